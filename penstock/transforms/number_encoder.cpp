#include "penstock/transforms/number_encoder.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace penstock {
namespace {

// A missing value becomes the mean, which is 0 after standardising; where
// nothing is standardised it is a plain 0. Either way: 0. A fill was put in its
// place before.
inline double standardized(const Standardization& by, double raw) {
  double shift = by.standardize ? by.mean : 0.0;
  double divisor = by.standardize ? by.divisor : 1.0;
  return std::isnan(raw) ? 0.0 : (raw - shift) / divisor;
}

}  // namespace

template <class Number>
bool NumberEncoder::encode_as(const double* raw, std::byte* out) const {
  bool fits = true;
  for (const Standardization& number : numbers_) {
    const bool infinite = std::isinf(*raw);  // the parser let it be a value
    double value = standardized(number, *raw++);
    // What underflows may be -0, and adding 0 makes it 0. Casting to a smaller
    // type gives an infinity where it overflows.
    Number rounded = static_cast<Number>(value) + Number{0};
    fits &=
        infinite | (std::abs(rounded) <= std::numeric_limits<Number>::max());
    std::memcpy(out, &rounded, sizeof(rounded));
    out += sizeof(rounded);
  }
  return fits;
}

template bool NumberEncoder::encode_as<float>(const double*, std::byte*) const;
template bool NumberEncoder::encode_as<double>(const double*, std::byte*) const;

RowFault NumberEncoder::what_does_not_fit(const double* raw,
                                          std::int64_t row) const {
  constexpr double kMostOfHalf = 65519;  // is rounded to 65504, the largest
  double most = dtype_ == Dtype::float64 ? std::numeric_limits<double>::max()
                : dtype_ == Dtype::float16
                    ? kMostOfHalf
                    : static_cast<double>(std::numeric_limits<float>::max());
  for (const Standardization& number : numbers_) {
    double value = standardized(number, *raw);
    double rounded = dtype_ == Dtype::float64
                         ? value
                         : static_cast<double>(static_cast<float>(value));
    if (std::abs(rounded) <= most || std::isinf(*raw)) {
      ++raw;
      continue;
    }
    std::string after =
        std::isfinite(value) ? Json(value).dump() : std::string("infinite");
    return {.row = row,
            .place = place_.of(number.name),
            .why = "found " + Json(*raw).dump() +
                   (number.standardize
                        ? ", which is " + after + " after standardising"
                        : ""),
            .what = "cannot hold a value in " + std::string(name_of(dtype_)),
            .next = place_.word == "key"
                        ? "check the data, or leave such rows out with 'where'"
                        : "use \"dtype\": \"float64\", or check the data"};
  }
  fail_assertion("a value does not fit", "a refused value is found again",
                 __FILE__, __LINE__);
}

}  // namespace penstock
