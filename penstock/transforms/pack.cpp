#include "penstock/transforms/pack.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"

namespace penstock {
namespace {

// A missing value becomes the mean, which is 0 after standardising; where
// nothing is standardised it is a plain 0. Either way: 0.
inline double standardized(const Standard& by, double raw) {
  double shift = by.standardize ? by.mean : 0.0;
  double divisor = by.standardize ? by.divisor : 1.0;
  return std::isnan(raw) ? 0.0 : (raw - shift) / divisor;
}

[[noreturn]] void refuse(const Field& field, const Standard& standard,
                         std::string_view dtype, double raw,
                         const std::function<std::string()>& row_name) {
  double value = standardized(standard, raw);
  bool set = field.json_set() != nullptr;
  throw Error(
      ErrorKind::transform,
      {.code = "transform.range",
       .what = "cannot hold a value in " + std::string(dtype),
       .where = "field '" + field.name + "', " + (set ? "key" : "column") +
                " '" + standard.name + "', " + row_name(),
       .why = "found " + Json(raw).dump() +
              (standard.standardize
                   ? ", which is " +
                         (std::isfinite(value) ? Json(value).dump()
                                               : std::string("infinite")) +
                         " after standardising"
                   : ""),
       .next = set ? "check the data, or leave out such rows by 'where'"
                   : "use \"dtype\": \"float64\", or check the data"});
}

// Rounds the values of one element, or of all columns. True when all fit.
template <class Number>
bool pack_values(const std::vector<Standard>& standards, const double* raw,
                 std::byte* out) {
  bool fits = true;
  for (const Standard& standard : standards) {
    double value = standardized(standard, *raw++);
    // What underflows may be -0, and adding 0 makes it 0. Casting to a smaller
    // type gives an infinity where it overflows.
    Number rounded = static_cast<Number>(value) + Number{0};
    fits &= std::abs(rounded) <= std::numeric_limits<Number>::max();
    std::memcpy(out, &rounded, sizeof(rounded));
    out += sizeof(rounded);
  }
  return fits;
}

template <class Number>
[[noreturn]] void refuse_first(const Field& field,
                               const std::vector<Standard>& standards,
                               std::string_view dtype, const double* raw,
                               const std::function<std::string()>& row_name) {
  for (const Standard& standard : standards) {
    Number value = static_cast<Number>(standardized(standard, *raw));
    if (!(std::abs(value) <= std::numeric_limits<Number>::max()))
      refuse(field, standard, dtype, *raw, row_name);
    ++raw;
  }
  fail_assertion("a value does not fit", "a refused value is found again",
                 __FILE__, __LINE__);
}

const double* pack_set(const Field& field, const TensorSpec& values,
                       const TensorSpec& mask,
                       const std::vector<Standard>& standards,
                       const double* raw, std::byte* out,
                       const std::function<std::string()>& row_name) {
  auto count = static_cast<std::size_t>(*raw++);
  std::size_t element_bytes = standards.size() * sizeof(float);
  std::byte* to = out + values.offset;
  for (std::size_t i = 0; i < count; ++i) {
    if (!pack_values<float>(standards, raw, to)) [[unlikely]]
      refuse_first<float>(field, standards, "float32", raw, row_name);
    raw += standards.size();
    to += element_bytes;
  }
  std::memset(to, 0, values.bytes - count * element_bytes);
  static constexpr float kPresent = 1;
  to = out + mask.offset;
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + i * sizeof(float), &kPresent, sizeof(float));
  std::memset(to + count * sizeof(float), 0,
              mask.bytes - count * sizeof(float));
  return raw;
}

const double* pack_columns(const Field& field, const TensorSpec& values,
                           const std::vector<Standard>& standards,
                           const double* raw, std::byte* out,
                           const std::function<std::string()>& row_name) {
  std::byte* to = out + values.offset;
  switch (values.dtype) {
    case Dtype::int64:
      std::memcpy(to, raw, values.bytes);
      break;
    case Dtype::float64:
      if (!pack_values<double>(standards, raw, to)) [[unlikely]]
        refuse_first<double>(field, standards, "float64", raw, row_name);
      break;
    case Dtype::float32:
      if (!pack_values<float>(standards, raw, to)) [[unlikely]]
        refuse_first<float>(field, standards, "float32", raw, row_name);
      break;
    default:
      fail_assertion("dtype", "columns are float32, float64 or int64", __FILE__,
                     __LINE__);
  }
  return raw + standards.size();
}

}  // namespace

void pack_row(const std::vector<Field>& fields, const RowLayout& layout,
              const Fitted& fitted, std::span<const double> raw, std::byte* out,
              const std::function<std::string()>& row_name) {
  const double* from = raw.data();
  const TensorSpec* tensor = layout.tensors.data();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::vector<Standard>& standards = fitted.fields[f];
    if (fields[f].json_set() != nullptr) {
      from = pack_set(fields[f], tensor[0], tensor[1], standards, from, out,
                      row_name);
      tensor += 2;
    } else {
      from = pack_columns(fields[f], *tensor++, standards, from, out, row_name);
    }
  }
}

}  // namespace penstock
