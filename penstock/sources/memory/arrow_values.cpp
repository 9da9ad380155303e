#include "penstock/sources/memory/arrow_values.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/half.h"

// Formats are those of "The Arrow C data interface", buffers those of "Arrow
// columnar format".

namespace penstock {
namespace {

struct NumberFormat {
  char format;
  Dtype dtype;
};
constexpr NumberFormat kNumbers[] = {
    {'c', Dtype::int8},   {'C', Dtype::uint8},  {'s', Dtype::int16},
    {'S', Dtype::uint16}, {'i', Dtype::int32},  {'I', Dtype::uint32},
    {'l', Dtype::int64},  {'L', Dtype::uint64}, {'f', Dtype::float32},
    {'g', Dtype::float64}};

std::optional<Dtype> number_of(std::string_view format) {
  if (format.size() != 1) return std::nullopt;
  for (const NumberFormat& number : kNumbers)
    if (number.format == format[0]) return number.dtype;
  return std::nullopt;
}

/// A number of the schema that stands for another one: seconds.
struct Scaled {
  Dtype dtype;     ///< as it is stored
  double divisor;  ///< what makes seconds, or the number, of it
  double factor;
  bool timestamp;
};

double ticks_in_second(char unit) {
  return unit == 's' ? 1 : unit == 'm' ? 1e3 : unit == 'u' ? 1e6 : 1e9;
}

/// Times of every unit.
std::optional<Scaled> scaled_of(std::string_view format) {
  if (format == "tdD") return Scaled{Dtype::int32, 1, 86400, true};
  if (format == "tdm") return Scaled{Dtype::int64, 1e3, 1, true};
  if (format.size() < 3 || format[0] != 't') return std::nullopt;
  const double ticks = ticks_in_second(format[2]);
  if (format[1] == 's') return Scaled{Dtype::int64, ticks, 1, true};
  if (format[1] == 'D') return Scaled{Dtype::int64, ticks, 1, false};
  if (format[1] == 't')
    return Scaled{ticks <= 1e3 ? Dtype::int32 : Dtype::int64, ticks, 1, false};
  return std::nullopt;
}

/// Digits behind the point of a decimal of 128 bits.
std::optional<int> decimal_scale(std::string_view format) {
  if (!format.starts_with("d:")) return std::nullopt;
  const std::size_t comma = format.find(',');
  if (comma == format.npos) return std::nullopt;
  const std::string_view rest = format.substr(comma + 1);
  int scale = 0;
  auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), scale);
  if (error != std::errc()) return std::nullopt;
  const bool wide = end != rest.data() + rest.size() &&
                    std::string_view(end, rest.data() + rest.size()) != ",128";
  return wide ? std::nullopt : std::optional(scale);
}

std::optional<std::int64_t> fixed_size(std::string_view format) {
  if (!format.starts_with("+w:")) return std::nullopt;
  std::int64_t size = 0;
  auto [end, error] =
      std::from_chars(format.data() + 3, format.data() + format.size(), size);
  return error == std::errc() ? std::optional(size) : std::nullopt;
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

bool bit_at(const void* bits, std::int64_t at) {
  return (static_cast<const std::uint8_t*>(bits)[at / 8] >> (at % 8) & 1) != 0;
}

bool valid_at(const ArrowArray& array, std::int64_t at) {
  return array.n_buffers == 0 || array.buffers[0] == nullptr ||
         bit_at(array.buffers[0], at);
}

Bytes borrowed(const void* from, std::size_t bytes) {
  if (from == nullptr || bytes == 0) return {};
  // The caller keeps the table: this owner owns nothing.
  return Bytes::borrow(
      {static_cast<const std::byte*>(from), bytes},
      std::shared_ptr<const void>(std::shared_ptr<void>(), from));
}

std::size_t size_at(std::int64_t end, std::size_t width) {
  return static_cast<std::size_t>(end) * width;
}

/// A decimal of 128 bits, rounded once where it has at most 2^53 units.
double decimal_at(const ArrowArray& array, std::int64_t at, double divisor) {
  const auto low = value_at<std::uint64_t>(array, 1, 2 * at);
  const auto high = value_at<std::int64_t>(array, 1, 2 * at + 1);
  if (high == 0) return static_cast<double>(low) / divisor;
  const bool one_word = high == -1 && (low >> 63) != 0;
  return (one_word
              ? static_cast<double>(static_cast<std::int64_t>(low))
              : static_cast<double>(high) * 0x1p64 + static_cast<double>(low)) /
         divisor;
}

double half_at(const ArrowArray& array, std::int64_t at) {
  return from_float16(value_at<std::uint16_t>(array, 1, at));
}

/// Text of the "view" layouts: short ones lie in the view itself.
std::string_view view_at(const ArrowArray& array, std::int64_t at) {
  const auto* view = static_cast<const char*>(array.buffers[1]) + 16 * at;
  std::int32_t length = 0, buffer = 0, offset = 0;
  std::memcpy(&length, view, 4);
  if (length <= 12) return {view + 4, static_cast<std::size_t>(length)};
  std::memcpy(&buffer, view + 8, 4);
  std::memcpy(&offset, view + 12, 4);
  return {static_cast<const char*>(array.buffers[2 + buffer]) + offset,
          static_cast<std::size_t>(length)};
}

std::int64_t index_at(const ArrowArray& array, Dtype dtype, std::int64_t at) {
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

/// The rows of `array`, all of them.
Column whole(const ArrowSchema& schema, const ArrowArray& array) {
  return arrow_values(arrow_column("", schema), schema, array, {}, 0,
                      array.offset, array.length);
}

Column decoded(const ArrowColumn& about, const ArrowSchema& schema,
               const ArrowArray& array, std::int64_t first, std::int64_t rows) {
  const Column values = whole(*schema.dictionary, *array.dictionary);
  const Dtype index = number_of(schema.format).value_or(Dtype::int64);
  Column out{.type = about.type};
  for (std::int64_t at = first; at < first + rows; ++at) {
    const bool valid = valid_at(array, at);
    const std::int64_t row = valid ? index_at(array, index, at) : 0;
    if (valid && values.valid(row))
      out.append_from(values, row);
    else
      out.append_null();
  }
  return out;
}

template <class ValueAt>
Column converted(const ArrowColumn& about, const ArrowArray& array,
                 std::int64_t first, std::int64_t rows, ValueAt append) {
  Column out{.type = about.type};
  for (std::int64_t at = first; at < first + rows; ++at)
    if (valid_at(array, at))
      append(out, at);
    else
      out.append_null();
  return out;
}

/// As another library lays it out.
Column as_it_is(const ArrowColumn& about, const ArrowSchema& schema,
                const ArrowArray& array, std::int64_t first,
                std::int64_t rows) {
  Column out{.type = about.type, .item = about.item};
  out.first = first;
  out.length = rows;
  const std::int64_t end = first + rows;
  if (array.n_buffers > 0)
    out.validity = borrowed(array.buffers[0], size_at((end + 7) / 8, 1));
  switch (about.type.kind) {
    case ColumnKind::null:
      return out;
    case ColumnKind::boolean:
      out.values = borrowed(array.buffers[1], size_at((end + 7) / 8, 1));
      return out;
    case ColumnKind::number:
      out.values =
          borrowed(array.buffers[1], size_at(end, size_of(about.type.dtype)));
      return out;
    case ColumnKind::fixed: {
      const ArrowArray& child = *array.children[0];
      const std::size_t width = size_of(about.type.dtype);
      const auto* from = static_cast<const std::byte*>(child.buffers[1]) +
                         size_at(child.offset, width);
      out.values =
          borrowed(from, size_at(end * elements_of(about.item), width));
      return out;
    }
    default:
      break;
  }
  out.wide = schema.format[0] == 'U' || schema.format[0] == 'Z' ||
             std::string_view(schema.format) == "+L";
  out.offsets = borrowed(array.buffers[1], size_at(end + 1, out.wide ? 8 : 4));
  if (about.type.kind == ColumnKind::list) {
    out.children.push_back(whole(*schema.children[0], *array.children[0]));
    return out;
  }
  const std::int64_t bytes = out.wide ? value_at<std::int64_t>(array, 1, end)
                                      : value_at<std::int32_t>(array, 1, end);
  out.values = borrowed(array.buffers[2], size_at(bytes, 1));
  return out;
}

Column without_structs(const ArrowColumn& about, const ArrowSchema& schema,
                       const ArrowArray& array, std::int64_t first,
                       std::int64_t rows) {
  const std::string_view format = schema.format;
  if (schema.dictionary != nullptr)
    return decoded(about, schema, array, first, rows);
  if (const auto scaled = scaled_of(format))
    return converted(
        about, array, first, rows, [&](Column& out, std::int64_t at) {
          const auto ticks =
              static_cast<double>(index_at(array, scaled->dtype, at));
          out.append_float64(ticks * scaled->factor / scaled->divisor);
        });
  if (const auto scale = decimal_scale(format)) {
    const double divisor = std::pow(10.0, *scale);
    return converted(about, array, first, rows,
                     [&](Column& out, std::int64_t at) {
                       out.append_float64(decimal_at(array, at, divisor));
                     });
  }
  if (format == "e")
    return converted(about, array, first, rows,
                     [&](Column& out, std::int64_t at) {
                       out.append_float64(half_at(array, at));
                     });
  if (format == "vu" || format == "vz")
    return converted(about, array, first, rows,
                     [&](Column& out, std::int64_t at) {
                       out.append_text(view_at(array, at));
                     });
  return as_it_is(about, schema, array, first, rows);
}

/// The same column where a struct above it is null.
Column with_nulls_above(const Column& column,
                        const std::vector<const ArrowArray*>& above,
                        std::int64_t begin) {
  Column out{.type = column.type, .item = column.item};
  if (column.type.kind == ColumnKind::list)
    out.children.emplace_back().type = column.children[0].type;
  for (std::int64_t row = 0; row < column.length; ++row) {
    bool valid = true;
    std::int64_t at = begin + row;
    for (const ArrowArray* parent : above) {
      at += parent->offset;
      valid = valid && valid_at(*parent, at);
    }
    if (valid)
      out.append_from(column, row);
    else
      out.append_null();
  }
  return out;
}

bool has_nulls(const ArrowArray& array) {
  return array.null_count != 0 && array.n_buffers > 0 &&
         array.buffers[0] != nullptr;
}

}  // namespace

ArrowColumn arrow_column(const std::string& name, const ArrowSchema& schema) {
  const std::string_view format = schema.format;
  ArrowColumn column{.info = {.name = name, .declared = std::string(format)}};
  auto is = [&](ColumnType type, const char* declared) {
    column.type = type;
    column.info.declared = declared;
  };
  if (schema.dictionary != nullptr) {
    ArrowColumn values = arrow_column(name, *schema.dictionary);
    values.info.declared = "dictionary of " + values.info.declared;
    return values;
  }
  if (const auto number = number_of(format)) {
    column.type = ColumnType::number(*number);
    column.info.declared = name_of(*number);
  } else if (format == "e") {
    is(ColumnType::float64, "float16");
  } else if (format == "b") {
    is(ColumnType::boolean, "bool");
    column.info.boolean = true;
  } else if (format == "u" || format == "U" || format == "vu") {
    is(ColumnType::text, "string");
    column.info.text = true;
  } else if (format == "z" || format == "Z" || format == "vz") {
    is(ColumnType::binary, "binary");
  } else if (format == "n") {
    is(ColumnType::null, "null");
  } else if (const auto scaled = scaled_of(format)) {
    is(ColumnType::float64, format[1] == 'd'   ? "date"
                            : format[1] == 's' ? "timestamp"
                            : format[1] == 't' ? "time"
                                               : "duration");
    column.info.timestamp = scaled->timestamp;
  } else if (decimal_scale(format)) {
    is(ColumnType::float64, "decimal128");
  } else if (format == "+l" || format == "+L") {
    const ArrowColumn child = arrow_column("", *schema.children[0]);
    is(ColumnType::list, "list");
    column.info.declared += "<" + child.info.declared + ">";
    column.element = child.type;
    column.unsupported = child.unsupported;
  } else if (const auto size = fixed_size(format)) {
    const ArrowColumn child = arrow_column("", *schema.children[0]);
    column.info.declared = "fixed_size_list<" + child.info.declared + ">[" +
                           std::to_string(*size) + "]";
    if (child.type.kind == ColumnKind::number && child.unsupported.empty()) {
      column.type = ColumnType::tensor(child.type.dtype);
      column.item = {*size};
    } else {
      column.unsupported = column.info.declared;
    }
  } else {
    column.unsupported = format == "+m" ? "map" : std::string(format);
    column.info.declared = column.unsupported;
  }
  return column;
}

bool may_hold_nulls(const ArrowArray& batch,
                    const std::vector<std::size_t>& path) {
  const ArrowArray* array = &batch;
  bool any = has_nulls(batch);
  for (std::size_t child : path) {
    array = array->children[child];
    any |= has_nulls(*array);
  }
  return any || array->n_buffers == 0;  // the type null has no buffer
}

Column arrow_values(const ArrowColumn& column, const ArrowSchema& schema,
                    const ArrowArray& array,
                    const std::vector<const ArrowArray*>& above,
                    std::int64_t begin, std::int64_t first, std::int64_t rows) {
  Column values = without_structs(column, schema, array, first, rows);
  for (const ArrowArray* parent : above)
    if (has_nulls(*parent)) return with_nulls_above(values, above, begin);
  return values;
}

}  // namespace penstock
