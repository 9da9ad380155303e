#include "penstock/transforms/numbers/number_row.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"

namespace penstock {
namespace {

template <class Number>
double loaded(const std::byte* from) {
  Number number;
  std::memcpy(&number, from, sizeof(number));
  return static_cast<double>(number);
}

double number_at(Dtype dtype, const std::byte* from) {
  switch (dtype) {
    case Dtype::float64:
      return loaded<double>(from);
    case Dtype::float32:
      return loaded<float>(from);
    case Dtype::int64:
      return loaded<std::int64_t>(from);
    case Dtype::int32:
      return loaded<std::int32_t>(from);
    case Dtype::int16:
      return loaded<std::int16_t>(from);
    case Dtype::int8:
      return loaded<std::int8_t>(from);
    case Dtype::uint64:
      return loaded<std::uint64_t>(from);
    case Dtype::uint32:
      return loaded<std::uint32_t>(from);
    case Dtype::uint16:
      return loaded<std::uint16_t>(from);
    case Dtype::boolean:
    case Dtype::uint8:
      return loaded<std::uint8_t>(from);
    default:
      break;
  }
  fail_assertion("dtype", "a number has a width that is read", __FILE__,
                 __LINE__);
}

}  // namespace

NumberRow::NumberRow(const std::vector<ColumnType>& types, bool keeps_bits,
                     bool has_mask, NumberMaths done)
    : exact(keeps_bits), masked(has_mask), maths(done) {
  for (ColumnType type : types) {
    Dtype dtype =
        type.kind == ColumnKind::boolean ? Dtype::boolean : type.dtype;
    places.push_back({dtype, bytes});
    bytes += size_of(dtype);
  }
  if (masked) bytes += places.size();
}

bool NumberRow::canonical() const {
  if (masked && !exact) return false;
  return std::ranges::all_of(places, [&](const Place& place) {
    return place.dtype == (exact ? Dtype::int64 : Dtype::float64);
  });
}

// An exact integer travels as the bits of a double, so that rows of both kinds
// have one form. Nothing computes with it on the way, and 64-bit integers keep
// all their bits.
void NumberRow::decode(const std::byte* row, double* out) const {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    double number = present(row, i) ? number_at(place.dtype, row + place.offset)
                                    : std::numeric_limits<double>::quiet_NaN();
    if (exact) {
      std::int64_t integer = 0;
      if (!present(row, i))
        integer = 0;
      else if (place.dtype == Dtype::int64 ||
               place.dtype == Dtype::uint64)  // which float64 need not hold
        std::memcpy(&integer, row + place.offset, sizeof(integer));
      else
        integer = static_cast<std::int64_t>(number);
      number = std::bit_cast<double>(integer);
    }
    *out++ = number;
  }
}

void NumberRow::prepare(const std::byte* row, double* out) const {
  decode(row, out);
  if (!maths.any()) return;
  for (std::size_t i = 0; i < places.size(); ++i) out[i] = maths.of(out[i]);
}

}  // namespace penstock
