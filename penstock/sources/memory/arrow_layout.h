#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/base/half.h"
#include "penstock/sources/decimal_units.h"
#include "penstock/sources/memory/arrow_abi.h"

// How values lie in arrays of Arrow's C data interface. Formats are those of
// "The Arrow C data interface", buffers those of "Arrow columnar format". A
// place counts from the begin of the buffers: the array's offset is in it.

namespace penstock::arrow_layout {

struct NumberFormat {
  char format;
  Dtype dtype;
};
inline constexpr NumberFormat kNumbers[] = {
    {'c', Dtype::int8},   {'C', Dtype::uint8},  {'s', Dtype::int16},
    {'S', Dtype::uint16}, {'i', Dtype::int32},  {'I', Dtype::uint32},
    {'l', Dtype::int64},  {'L', Dtype::uint64}, {'f', Dtype::float32},
    {'g', Dtype::float64}};

inline std::optional<Dtype> number_of(std::string_view format) {
  if (format.size() != 1) return std::nullopt;
  for (const NumberFormat& number : kNumbers)
    if (number.format == format[0]) return number.dtype;
  return std::nullopt;
}

/// What stands behind `prefix` as a number: "w:16" is 16 behind "w:".
inline std::optional<std::int64_t> size_behind(std::string_view prefix,
                                               std::string_view format) {
  if (!format.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = format.substr(prefix.size());
  std::int64_t size = 0;
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), size);
  return error == std::errc() ? std::optional(size) : std::nullopt;
}

/// A decimal: digits behind its point, and the bytes that it has.
struct DecimalFormat {
  int scale;
  std::size_t width;
};
inline std::optional<DecimalFormat> decimal_of(std::string_view format) {
  if (!format.starts_with("d:")) return std::nullopt;
  const std::size_t comma = format.find(',');
  if (comma == format.npos) return std::nullopt;
  const std::string_view rest = format.substr(comma + 1);
  const std::size_t next = rest.find(',');
  int scale = 0;
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), scale);
  if (error != std::errc()) return std::nullopt;
  if (next == rest.npos) return DecimalFormat{scale, 16};
  const std::string_view bits = rest.substr(next + 1);
  for (std::size_t width : {4u, 8u, 16u, 32u})
    if (bits == std::to_string(8 * width)) return DecimalFormat{scale, width};
  return std::nullopt;
}

/// Its offsets have 64 bits.
inline bool is_wide(std::string_view format) {
  return format == "U" || format == "Z" || format == "+L";
}

template <class Number>
Number value_at(const ArrowArray& array, int buffer, std::int64_t at) {
  Number number;
  std::memcpy(&number,
              static_cast<const std::byte*>(array.buffers[buffer]) +
                  static_cast<std::size_t>(at) * sizeof(Number),
              sizeof(number));
  return number;
}

inline DecimalUnits decimal_at(const ArrowArray& array, std::size_t width,
                               std::int64_t at) {
  return DecimalUnits::at(static_cast<const std::byte*>(array.buffers[1]) +
                              static_cast<std::size_t>(at) * width,
                          width);
}

inline bool bit_at(const void* bits, std::int64_t at) {
  return (static_cast<const std::uint8_t*>(bits)[at / 8] >> (at % 8) & 1) != 0;
}

inline bool valid_at(const ArrowArray& array, std::int64_t at) {
  return array.n_buffers == 0 || array.buffers[0] == nullptr ||
         bit_at(array.buffers[0], at);
}

inline bool has_nulls(const ArrowArray& array) {
  return array.null_count != 0 && array.n_buffers > 0 &&
         array.buffers[0] != nullptr;
}

/// Where the bytes, or the elements, of a place begin.
inline std::int64_t offset_at(const ArrowArray& array, bool wide,
                              std::int64_t at) {
  return wide ? value_at<std::int64_t>(array, 1, at)
              : value_at<std::int32_t>(array, 1, at);
}

/// IEEE 754's binary16.
inline float half_at(const ArrowArray& array, std::int64_t at) {
  return from_float16(value_at<std::uint16_t>(array, 1, at));
}

inline std::string_view text_at(const ArrowArray& array, bool wide,
                                std::int64_t at) {
  const std::int64_t begin = offset_at(array, wide, at);
  return {static_cast<const char*>(array.buffers[2]) + begin,
          static_cast<std::size_t>(offset_at(array, wide, at + 1) - begin)};
}

/// Text of the "view" layouts: short ones lie in the view itself.
inline std::string_view view_at(const ArrowArray& array, std::int64_t at) {
  const auto* view = static_cast<const char*>(array.buffers[1]) + 16 * at;
  std::int32_t length = 0, buffer = 0, offset = 0;
  std::memcpy(&length, view, 4);
  if (length <= 12) return {view + 4, static_cast<std::size_t>(length)};
  std::memcpy(&buffer, view + 8, 4);
  std::memcpy(&offset, view + 12, 4);
  return {static_cast<const char*>(array.buffers[2 + buffer]) + offset,
          static_cast<std::size_t>(length)};
}

/// An integer of any width.
inline std::int64_t index_at(const ArrowArray& array, Dtype dtype,
                             std::int64_t at) {
  switch (dtype) {
    case Dtype::int8:
      return value_at<std::int8_t>(array, 1, at);
    case Dtype::uint8:
      return value_at<std::uint8_t>(array, 1, at);
    case Dtype::int16:
      return value_at<std::int16_t>(array, 1, at);
    case Dtype::uint16:
      return value_at<std::uint16_t>(array, 1, at);
    case Dtype::int32:
      return value_at<std::int32_t>(array, 1, at);
    case Dtype::uint32:
      return value_at<std::uint32_t>(array, 1, at);
    default:
      return value_at<std::int64_t>(array, 1, at);
  }
}

/// Which value of its dictionary stands at a place that is valid, as a place of
/// the dictionary's. Throws Error(source), source.stream, for one that it has
/// not.
std::int64_t dictionary_place(const ArrowSchema& schema,
                              const ArrowArray& array, std::int64_t at);

}  // namespace penstock::arrow_layout
