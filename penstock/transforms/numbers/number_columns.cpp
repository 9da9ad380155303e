#include "penstock/transforms/numbers/number_columns.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/base/with_number.h"

namespace penstock {
namespace {

// Column by column, with the types as template arguments: the loop has no
// branch and is done many rows at a time. Whether all fit is only collected;
// the caller goes over the rows again to say which one does not.
template <class From, class To, bool kStandardized>
bool encode_column(std::span<const ValueRow> rows, std::size_t offset,
                   const Standardization& by, std::byte* to,
                   std::size_t stride) {
  const double shift = by.mean, divisor = by.divisor;
  bool fits = true;
  for (const ValueRow& row : rows) {
    From number;
    std::memcpy(&number, row.data() + offset, sizeof(number));
    auto value = static_cast<double>(number);
    if constexpr (kStandardized) value = (value - shift) / divisor;
    // What underflows may be -0, and adding 0 makes it 0.
    const To rounded = static_cast<To>(value) + To{0};
    fits &= std::abs(rounded) <= std::numeric_limits<To>::max();
    std::memcpy(to, &rounded, sizeof(rounded));
    to += stride;
  }
  return fits;
}

template <class To>
bool encode_all(std::span<const ValueRow> rows, const NumberRow& format,
                const std::vector<Standardization>& by, const StoredRows& out) {
  bool fits = true;
  for (std::size_t c = 0; c < by.size(); ++c)
    with_number(format.places[c].dtype, [&]<class From>(Typed<From>) {
      auto encode = by[c].standardize ? encode_column<From, To, true>
                                      : encode_column<From, To, false>;
      fits &= encode(rows, format.places[c].offset, by[c],
                     out.data + c * sizeof(To), out.stride);
    });
  return fits;
}

}  // namespace

bool encode_columns(std::span<const ValueRow> rows, const NumberRow& format,
                    const std::vector<Standardization>& by, Dtype made,
                    const StoredRows& out) {
  return made == Dtype::float64 ? encode_all<double>(rows, format, by, out)
                                : encode_all<float>(rows, format, by, out);
}

}  // namespace penstock
