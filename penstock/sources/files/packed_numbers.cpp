#include "penstock/sources/files/packed_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "penstock/base/half.h"
#include "penstock/base/log.h"
#include "penstock/base/with_number.h"

namespace penstock::files {
namespace {

bool is_floating(Dtype dtype) {
  return is_half(dtype) || dtype == Dtype::float32 || dtype == Dtype::float64;
}

const Json* found_in(const Json& attributes, const char* key) {
  const Json* found = attributes.is_object() ? attributes.find(key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

/// A number, or a list of numbers; nullopt: something else.
std::optional<std::vector<Json>> numbers_in(const Json& value) {
  if (value.is_number()) return std::vector<Json>{value};
  if (!value.is_array() ||
      !std::ranges::all_of(value.array(), &Json::is_number))
    return std::nullopt;
  return std::vector<Json>(value.array().begin(), value.array().end());
}

/// The same bits with a sign, or without one.
Dtype with_sign(Dtype dtype, bool is_signed) {
  constexpr Dtype kSigned[] = {Dtype::int8, Dtype::int16, Dtype::int32,
                               Dtype::int64};
  constexpr Dtype kUnsigned[] = {Dtype::uint8, Dtype::uint16, Dtype::uint32,
                                 Dtype::uint64};
  for (std::size_t at = 0; at < std::size(kSigned); ++at)
    if (dtype == kSigned[at] || dtype == kUnsigned[at])
      return is_signed ? kSigned[at] : kUnsigned[at];
  return dtype;
}

/// A number whose bits are read with the sign of `dtype`: -1 is 255 in uint8.
double with_bits_of(const Json& number, Dtype dtype) {
  const auto* whole = std::get_if<std::int64_t>(&number.value());
  if (whole == nullptr) return number.number();
  return with_number(dtype, [&]<class To>(Typed<To>) {
    return static_cast<double>(static_cast<To>(*whole));
  });
}

class Rules {
 public:
  Rules(const Json& attributes, const std::vector<std::string>& singles,
        const std::string& place)
      : attributes_(attributes), singles_(singles), place_(place) {}

  // "CF Conventions", Packed Data: value = stored * scale_factor + add_offset,
  // and what equals missing_value or _FillValue (compared before unpacking) is
  // missing. _Unsigned is of the netCDF users' guide: classic files have no
  // unsigned types. The width of the result follows xarray's rules, so that
  // both give equal floats.
  PackedNumbers read(Dtype stored) const {
    PackedNumbers packed{.stored = stored, .dtype = stored};
    const bool other_sign = read_sign(packed);
    const bool scaled = read_one("scale_factor", packed.scale);
    const bool moved = read_one("add_offset", packed.offset);
    read_missing("missing_value", false, packed);
    read_missing("_FillValue", other_sign, packed);
    packed.unpacks = scaled || moved || !packed.missing.empty();
    if (!packed.unpacks)
      packed.dtype = packed.stored;
    else if (scaled || moved)
      packed.dtype = dtype_of_scaled(packed.stored, scaled, moved);
    else
      packed.dtype = size_of(stored) <= 2 || stored == Dtype::float32
                         ? Dtype::float32
                         : Dtype::float64;
    return packed;
  }

 private:
  void warn(const char* key, const std::string& why) const {
    log(LogLevel::warning, "'" + place_ + "': its " + key + " " +
                               found_in(attributes_, key)->dump() + " " + why +
                               ": the attribute is ignored");
  }

  bool read_sign(PackedNumbers& packed) const {
    const Json* found = found_in(attributes_, "_Unsigned");
    if (found == nullptr || is_floating(packed.stored)) return false;
    const bool to_unsigned = *found == Json("true");
    if (!to_unsigned && *found != Json("false")) return false;
    const Dtype before = packed.stored;
    packed.stored = with_sign(before, !to_unsigned);
    return packed.stored != before;
  }

  bool read_one(const char* key, double& to) const {
    const Json* found = found_in(attributes_, key);
    if (found == nullptr) return false;
    const auto numbers = numbers_in(*found);
    if (!numbers || numbers->size() != 1) {
      warn(key, "is not one number");
      return false;
    }
    to = numbers->front().number();
    return true;
  }

  /// NaN is NaN already.
  void read_missing(const char* key, bool other_sign,
                    PackedNumbers& packed) const {
    const Json* found = found_in(attributes_, key);
    if (found == nullptr) return;
    const auto numbers = numbers_in(*found);
    if (!numbers) {
      if (*found != Json("NaN")) warn(key, "is not a number");
      return;
    }
    for (const Json& number : *numbers) {
      const double value =
          other_sign ? with_bits_of(number, packed.stored) : number.number();
      if (!std::isnan(value)) packed.missing.push_back(value);
    }
  }

  /// float32 where the factor is, and the offset is one too; but integers of
  /// 32 bits have no room there.
  Dtype dtype_of_scaled(Dtype stored, bool scaled, bool moved) const {
    auto single = [&](const char* key) {
      return std::ranges::find(singles_, key) != singles_.end();
    };
    if (!scaled || !single("scale_factor")) return Dtype::float64;
    if (!moved) return Dtype::float32;
    const bool wide = size_of(stored) == 4 && !is_floating(stored);
    return single("add_offset") && !wide ? Dtype::float32 : Dtype::float64;
  }

  const Json& attributes_;
  const std::vector<std::string>& singles_;
  const std::string& place_;
};

template <class From, class To, class Value>
Bytes unpacked_to(const PackedNumbers& packed, std::span<const From> from,
                  Value value_of) {
  const To scale = static_cast<To>(packed.scale);
  const To offset = static_cast<To>(packed.offset);
  Bytes out;
  out.resize(from.size() * sizeof(To));
  To* to = out.mutable_data<To>();
  for (From stored : from) {
    const To value = static_cast<To>(value_of(stored));
    const bool missing = std::ranges::find(packed.missing, double{value}) !=
                         packed.missing.end();
    *to++ =
        missing ? std::numeric_limits<To>::quiet_NaN() : value * scale + offset;
  }
  return out;
}

template <class From, class Value>
Bytes unpacked_from(const PackedNumbers& packed, const Bytes& stored,
                    Value value_of) {
  const std::span<const From> from = stored.as<From>();
  return packed.dtype == Dtype::float32
             ? unpacked_to<From, float>(packed, from, value_of)
             : unpacked_to<From, double>(packed, from, value_of);
}

}  // namespace

PackedNumbers packed_by(const Json& attributes,
                        const std::vector<std::string>& singles, Dtype stored,
                        const std::string& place) {
  return Rules(attributes, singles, place).read(stored);
}

Bytes unpacked(const PackedNumbers& packed, const Bytes& stored) {
  if (is_half(packed.stored))
    return unpacked_from<std::uint16_t>(
        packed, stored,
        [&](std::uint16_t bits) { return from_half(packed.stored, bits); });
  return with_number(packed.stored, [&]<class From>(Typed<From>) {
    return unpacked_from<From>(packed, stored,
                               [](From number) { return number; });
  });
}

}  // namespace penstock::files
