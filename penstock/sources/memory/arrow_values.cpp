#include "penstock/sources/memory/arrow_values.h"

#include <optional>
#include <string_view>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/memory/arrow_json.h"
#include "penstock/sources/memory/arrow_layout.h"

namespace penstock {
namespace {

using namespace arrow_layout;

/// A number of the schema that stands for another one: seconds.
struct Scaled {
  Dtype dtype;     ///< as stored
  double divisor;  ///< what makes seconds, or the number, of it
  double factor;
  bool timestamp;
};

double ticks_in_second(char unit) {
  return unit == 's' ? 1 : unit == 'm' ? 1e3 : unit == 'u' ? 1e6 : 1e9;
}

/// Times of every unit. Format strings of the C data interface: "tdD" days,
/// "tdm" milliseconds, "ts?:" timestamp, "tt?" time, "tD?" duration, where ? is
/// s, m, u or n. A timestamp counts from 1970 UTC whether or not a time zone
/// follows the colon.
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

/// The rows of `array`, all of them.
Column whole(const ArrowSchema& schema, const ArrowArray& array) {
  return arrow_values(arrow_column("", schema), schema, array, {}, 0,
                      array.offset, array.length);
}

Column decoded(const ArrowColumn& about, const ArrowSchema& schema,
               const ArrowArray& array, std::int64_t first, std::int64_t rows) {
  const Column values = whole(*schema.dictionary, *array.dictionary);
  Column out{.type = about.type, .item = about.item};
  if (about.type.kind == ColumnKind::list)
    out.children.emplace_back().type = about.element;
  for (std::int64_t at = first; at < first + rows; ++at) {
    const bool valid = valid_at(array, at);
    const std::int64_t row =
        valid ? dictionary_place(schema, array, at) - array.dictionary->offset
              : 0;
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
  out.wide = is_wide(schema.format);
  out.offsets = borrowed(array.buffers[1], size_at(end + 1, out.wide ? 8 : 4));
  if (about.type.kind == ColumnKind::list) {
    out.children.push_back(whole(*schema.children[0], *array.children[0]));
    return out;
  }
  if (rows == 0) return out;  // there may be no offsets
  out.values =
      borrowed(array.buffers[2], size_at(offset_at(array, out.wide, end), 1));
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
  if (const auto decimal = decimal_of(format))
    return converted(
        about, array, first, rows, [&](Column& out, std::int64_t at) {
          out.append_float64(float64_of(decimal_at(array, decimal->width, at),
                                        decimal->scale));
        });
  if (format == "e")
    return converted(about, array, first, rows,
                     [&](Column& out, std::int64_t at) {
                       out.append_number(half_at(array, at));
                     });
  if (about.type == ColumnType::json)
    return converted(about, array, first, rows,
                     [&](Column& out, std::int64_t at) {
                       std::string text;
                       append_json(schema, array, at, text);
                       out.append_text(text);
                     });
  if (const auto size = size_behind("w:", format))
    return converted(
        about, array, first, rows, [&](Column& out, std::int64_t at) {
          const auto width = static_cast<std::size_t>(*size);
          out.append_text({static_cast<const char*>(array.buffers[1]) +
                               static_cast<std::size_t>(at) * width,
                           width});
        });
  if (format == "vu" || format == "vz")
    return converted(about, array, first, rows,
                     [&](Column& out, std::int64_t at) {
                       out.append_text(view_at(array, at));
                     });
  return as_it_is(about, schema, array, first, rows);
}

/// The same column where a struct above it is null. A null struct does not make
/// its members null: their bitmaps may say anything there ("Arrow Columnar
/// Format", Struct Layout). So all bitmaps on the way down are combined.
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

/// Types that are not read, by how their formats begin.
constexpr std::pair<const char*, const char*> kUnread[] = {
    {"+us:", "sparse_union"},   {"+ud:", "dense_union"},
    {"+r", "run_end_encoded"},  {"+vl", "list_view"},
    {"+vL", "large_list_view"}, {"ti", "interval"}};

/// Lists and structs: of numbers they are lists and tensors, of others JSON.
void describe_nested(const ArrowSchema& schema, ArrowColumn& column) {
  const std::string_view format = schema.format;
  const auto size = size_behind("+w:", format);
  if (format == "+l" || format == "+L" || size) {
    const ArrowSchema& child = *schema.children[0];
    const std::string element = arrow_column("", child).info.declared;
    column.info.declared =
        size ? "fixed_size_list<" + element + ">[" + std::to_string(*size) + "]"
             : "list<" + element + ">";
    const auto number =
        child.dictionary == nullptr ? number_of(child.format) : std::nullopt;
    if (number) {
      column.element = ColumnType::number(*number);
      column.type = size ? ColumnType::tensor(*number) : ColumnType::list;
      if (size) column.item = {*size};
      return;
    }
  } else if (format == "+m" || format == "+s") {
    column.info.declared = format == "+m" ? "map" : "struct";
  } else {
    for (const auto& [prefix, name] : kUnread)
      if (format.starts_with(prefix)) column.info.declared = name;
  }
  column.type = ColumnType::json;
  if (!has_json(schema)) column.unsupported = column.info.declared;
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
    is(ColumnType::number(Dtype::float32), "float16");
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
  } else if (const auto decimal = decimal_of(format)) {
    column.type = ColumnType::float64;
    column.info.declared = "decimal" + std::to_string(8 * decimal->width);
  } else if (size_behind("w:", format)) {
    is(ColumnType::binary, "fixed_size_binary");
  } else {
    describe_nested(schema, column);
  }
  return column;
}

std::int64_t arrow_layout::dictionary_place(const ArrowSchema& schema,
                                            const ArrowArray& array,
                                            std::int64_t at) {
  const std::int64_t index = index_at(array, index_type(schema).dtype, at);
  const ArrowArray& values = *array.dictionary;
  if (index < 0 || index >= values.length)
    throw Error(ErrorKind::source,
                {.code = "source.stream",
                 .what = "cannot take the rows of an Arrow stream",
                 .where = "__arrow_c_stream__",
                 .why = "value " + std::to_string(index) +
                        " of a dictionary of " + std::to_string(values.length),
                 .next = "build the table again"});
  return values.offset + index;
}

std::vector<std::int64_t> rows_with_gaps(const ArrowColumn& column,
                                         const ArrowArray& array,
                                         std::int64_t first,
                                         std::int64_t rows) {
  std::vector<std::int64_t> found;
  if (column.type.kind != ColumnKind::fixed || array.n_children != 1 ||
      !has_nulls(*array.children[0]))
    return found;
  const ArrowArray& child = *array.children[0];
  const std::int64_t size = elements_of(column.item);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (!valid_at(array, first + row)) continue;
    std::int64_t at = child.offset + (first + row) * size;
    const std::int64_t end = at + size;
    while (at < end && valid_at(child, at)) ++at;
    if (at < end) found.push_back(row);
  }
  return found;
}

bool is_borrowed(const ArrowColumn& column, const ArrowSchema& schema) {
  if (schema.dictionary != nullptr) return false;
  const std::string_view format = schema.format;
  return number_of(format) || format == "b" || format == "u" || format == "U" ||
         format == "z" || format == "Z" ||
         column.type.kind == ColumnKind::fixed;
}

std::vector<std::string> dictionary_of(const ArrowSchema& schema,
                                       const ArrowArray& array) {
  const Column values = whole(*schema.dictionary, *array.dictionary);
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < values.length; ++row)
    texts.emplace_back(values.valid(row) ? values.text(row) : "");
  return texts;
}

ColumnType index_type(const ArrowSchema& schema) {
  return ColumnType::number(number_of(schema.format).value_or(Dtype::int64));
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
