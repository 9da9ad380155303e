#include "penstock/sources/files/served_column.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/half.h"
#include "penstock/base/hash.h"
#include "penstock/base/real_number.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/decimal.h"
#include "penstock/sources/files/row_slice.h"
#include "penstock/sources/timestamp.h"

namespace penstock::files {
namespace {

using By = ServedColumn::By;

bool is_number(ColumnType type) { return type.kind == ColumnKind::number; }
bool is_boolean(ColumnType type) { return type.kind == ColumnKind::boolean; }
bool is_float(ColumnType type) {
  return is_number(type) &&
         (type.dtype == Dtype::float64 || type.dtype == Dtype::float32 ||
          type.dtype == Dtype::float16);
}

[[noreturn]] void refuse(const FileColumn& column, const std::string& setting,
                         const std::string& wanted, std::string next) {
  throw Error(ErrorKind::request,
              {.code = "source.column_type",
               .what = "cannot read column '" + column.name + "'",
               .where = setting,
               .why = "the column holds " + column.declared + ", but " +
                      wanted + " is needed",
               .next = std::move(next)});
}

/// Calls `work` with a value of the C++ type of a dtype.
template <class Work>
auto with_type(Dtype dtype, Work work) {
  switch (dtype) {
    case Dtype::float32:
      return work(float{});
    case Dtype::int8:
      return work(std::int8_t{});
    case Dtype::int16:
      return work(std::int16_t{});
    case Dtype::int32:
      return work(std::int32_t{});
    case Dtype::int64:
      return work(std::int64_t{});
    case Dtype::uint8:
      return work(std::uint8_t{});
    case Dtype::uint16:
      return work(std::uint16_t{});
    case Dtype::uint32:
      return work(std::uint32_t{});
    case Dtype::uint64:
      return work(std::uint64_t{});
    default:
      return work(double{});
  }
}

std::string article(ColumnType type) {
  return is_float(type)
             ? "a finite " + std::string(name_of(type))
             : "a value that " + std::string(name_of(type)) + " can hold";
}

/// Whether `value` is a value of To, too. A float64 becomes float32 by
/// rounding, as everywhere; it must not become infinite. The largest integer of
/// To is not a float, in general: it would be rounded up, out of range. So the
/// bound is the power of two above it, computed from the half, which is exact.
template <class To, class From>
bool fits(From value, To& to) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Twice the half is one beyond the largest, which a float can hold.
    const From beyond =
        static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    const From least = static_cast<From>(std::numeric_limits<To>::min());
    if (!(value >= least && value < beyond) || value != std::trunc(value))
      return false;
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (!std::in_range<To>(value)) return false;
  }
  to = static_cast<To>(value);
  if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>)
    return std::isfinite(to) || !std::isfinite(value);
  return true;
}

class Problems {
 public:
  Problems(std::size_t at, std::vector<RowProblem>& problems)
      : at_(at), problems_(problems) {}
  void add(std::int64_t row, const std::string& found,
           const std::string& expected) {
    problems_.push_back(
        {row, at_, "holds " + found + " where " + expected + " is expected"});
  }

 private:
  const std::size_t at_;
  std::vector<RowProblem>& problems_;
};

/// Every From is a To.
template <class From, class To>
constexpr bool widens() {
  if constexpr (std::is_same_v<From, bool>)
    return false;
  else if constexpr (std::is_floating_point_v<To>)
    return std::is_integral_v<From> || sizeof(From) <= sizeof(To);
  else if constexpr (std::is_integral_v<From>)
    return std::in_range<To>(std::numeric_limits<From>::min()) &&
           std::in_range<To>(std::numeric_limits<From>::max());
  return false;
}

template <class From, class To>
void widen(const Column& from, Column& to) {
  const auto rows = static_cast<std::size_t>(from.length);
  if (rows == 0) return;
  const From* in =
      from.values.as<From>().data() + static_cast<std::size_t>(from.first);
  to.values.resize(rows * sizeof(To));
  auto* out = to.values.mutable_data<To>();
  for (std::size_t row = 0; row < rows; ++row)
    out[row] = static_cast<To>(in[row]);
  to.length = from.length;
  take_nulls(from, to);
}

template <class From, class To>
void convert_numbers(const Column& from, Column& to, Problems& problems) {
  if constexpr (widens<From, To>()) return widen<From, To>(from, to);
  for (std::int64_t row = 0; row < from.length; ++row) {
    if (!from.valid(row)) {
      to.append_null();
      continue;
    }
    std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From> value{};
    if constexpr (std::is_same_v<From, bool>)
      value = from.boolean(row);
    else
      value = from.number<From>(row);
    To number{};
    if (fits<To>(value, number)) {
      to.append_number(number);
      continue;
    }
    char buffer[32];
    problems.add(row, std::string(decimal(value, buffer)), article(to.type));
    to.append_null();
  }
}

void numbers(const Column& from, Column& to, Problems& problems) {
  if (is_boolean(to.type)) {
    for (std::int64_t row = 0; row < from.length; ++row) {
      double value = from.valid(row) ? from.as_float64(row) : 0;
      bool good = value == 0 || value == 1;
      char buffer[32];
      if (from.valid(row) && good) {
        to.append_boolean(value == 1);
        continue;
      }
      if (from.valid(row))
        problems.add(row, std::string(decimal(value, buffer)),
                     "a boolean (0 or 1)");
      to.append_null();
    }
    return;
  }
  with_type(to.type.dtype, [&]<class To>(To) {
    if (is_boolean(from.type))
      return convert_numbers<bool, To>(from, to, problems);
    with_type(from.type.dtype, [&]<class From>(From) {
      convert_numbers<From, To>(from, to, problems);
    });
  });
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  std::from_chars_result read;
  if constexpr (std::is_floating_point_v<Number>)
    read = real_from_chars(text.data(), end, number);
  else
    read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

bool parse_boolean(std::string_view text, bool& value) {
  for (const char* yes : {"true", "True", "TRUE", "1"})
    if (text == yes) return value = true;
  for (const char* no : {"false", "False", "FALSE", "0"})
    if (text == no) {
      value = false;
      return true;
    }
  return false;
}

void parsed(const Column& from, Column& to, Problems& problems) {
  for (std::int64_t row = 0; row < from.length; ++row) {
    if (!from.valid(row)) {
      to.append_null();
      continue;
    }
    std::string_view text = from.text(row);
    bool good = false;
    if (is_boolean(to.type)) {
      bool value = false;
      if ((good = parse_boolean(text, value))) to.append_boolean(value);
    } else {
      with_type(to.type.dtype, [&]<class To>(To value) {
        if ((good = parse(text, value))) to.append_number(value);
      });
    }
    if (good) continue;
    problems.add(row, shown_text(text), article(to.type));
    to.append_null();
  }
}

void times(const Column& from, Column& to, Problems& problems) {
  for (std::int64_t row = 0; row < from.length; ++row) {
    std::optional<double> time;
    if (from.valid(row)) time = timestamp_from(from.text(row));
    if (time) {
      to.append_float64(*time);
      continue;
    }
    if (from.valid(row))
      problems.add(row, shown_text(from.text(row)),
                   "a number or an ISO-8601 time");
    to.append_null();
  }
}

std::string text_of(const Column& from, std::int64_t row) {
  if (is_boolean(from.type)) return from.boolean(row) ? "true" : "false";
  auto shown = [](auto value) {
    char buffer[32];
    if constexpr (std::is_floating_point_v<decltype(value)>)
      if (!std::isfinite(value)) return std::string("null");
    return std::string(decimal(value, buffer));
  };
  if (is_half(from.type.dtype)) return shown(from.as_float64(row));
  return with_type(from.type.dtype, [&]<class Number>(Number) {
    return shown(from.number<Number>(row));
  });
}

void texts(const Column& from, Column& to) {
  for (std::int64_t row = 0; row < from.length; ++row)
    from.valid(row) ? to.append_text(text_of(from, row)) : to.append_null();
}

void json(const Column& from, Column& to) {
  const Column& child = from.children[0];
  std::string text;
  for (std::int64_t row = 0; row < from.length; ++row) {
    if (!from.valid(row)) {
      to.append_null();
      continue;
    }
    text = "[";
    for (std::int64_t at = from.offset(row); at < from.offset(row + 1); ++at) {
      if (text.size() > 1) text += ',';
      text += child.valid(at) ? text_of(child, at) : "null";
    }
    to.append_text(text + "]");
  }
}

std::string_view bytes_in(const Column& from, std::int64_t row) {
  if (from.type.kind == ColumnKind::uuid)
    return {reinterpret_cast<const char*>(from.uuid(row)), 16};
  if (from.type.kind == ColumnKind::list) {
    const Column& child = from.children[0];
    if (!is_number(child.type)) return {};
    const std::size_t width = size_of(child.type.dtype);
    return {
        reinterpret_cast<const char*>(child.values.data()) +
            width * static_cast<std::size_t>(child.first + from.offset(row)),
        width *
            static_cast<std::size_t>(from.offset(row + 1) - from.offset(row))};
  }
  if (from.type.kind == ColumnKind::fixed) {
    const std::size_t width = size_of(from.type.dtype) *
                              static_cast<std::size_t>(elements_of(from.item));
    return {reinterpret_cast<const char*>(from.values.data()) +
                width * static_cast<std::size_t>(from.first + row),
            width};
  }
  return from.text(row);
}

void stand_ins(const Column& from, Column& to) {
  for (std::int64_t row = 0; row < from.length; ++row)
    from.valid(row) ? to.append_int64(static_cast<std::int64_t>(
                          hash64(bytes_in(from, row))))
                    : to.append_null();
}

ServedColumn served_json(const FileColumn& column,
                         const ColumnRequest& request) {
  if (column.type.is_text()) return {ColumnType::json};
  if (column.type.kind == ColumnKind::list) return {ColumnType::json, By::json};
  if (column.type.kind == ColumnKind::null)
    return {ColumnType::json, By::nulls};
  refuse(column, request.setting, "JSON text or a list", "name another column");
}

/// Widths look alike in a hash, as in all sources. A hash is of bytes, so equal
/// values must have equal bytes whatever the source: integers are hashed as
/// int64, floats as float64. What has no such form (lists, tensors) is
/// represented by a hash of its bytes.
ServedColumn served_hash(const FileColumn& column) {
  const ColumnType type = column.type;
  if (type.kind == ColumnKind::null) return {ColumnType::int64, By::nulls};
  if (type.is_text() || is_boolean(type)) return {type};
  if (is_float(type))
    return {ColumnType::float64,
            type == ColumnType::float64 ? By::itself : By::number};
  // What is beyond int64 is a float64 in other sources, too.
  if (is_number(type) && type.dtype == Dtype::uint64)
    return {ColumnType::float64, By::number};
  if (is_number(type))
    return {ColumnType::int64,
            type == ColumnType::int64 ? By::itself : By::number};
  if (type.kind == ColumnKind::uuid) return {type};
  return {ColumnType::int64, By::stand_in};
}

}  // namespace

ServedColumn served(const FileColumn& column, const ColumnRequest& request) {
  const ColumnType type = column.type;
  switch (request.as) {
    case ReadAs::number:
      if (is_number(type) || is_boolean(type)) return {type};
      if (type.kind == ColumnKind::null)
        return {ColumnType::float64, By::nulls};
      if (type.is_text()) return {ColumnType::float64, By::time};
      refuse(column, request.setting, "a number", "name another column");
    case ReadAs::integer:
      if (type == ColumnType::int64) return {type};
      if (is_number(type) || is_boolean(type))
        return {ColumnType::int64, By::number};
      if (type.kind == ColumnKind::null) return {ColumnType::int64, By::nulls};
      refuse(column, request.setting, "an integer",
             type.is_text()
                 ? "for classes write {\"category\": {\"column\": \"" +
                       column.name + "\"}}, or name another column"
                 : "name another column");
    case ReadAs::json:
      return served_json(column, request);
    case ReadAs::key:
    case ReadAs::value:
      break;
  }
  return request.hashed ? served_hash(column) : ServedColumn{type};
}

ServedColumn chosen_type(const FileColumn& column, const std::string& chosen) {
  ColumnType wanted = ColumnType::text;
  Dtype dtype = Dtype::float64;
  const bool time = chosen == "timestamp";
  if (chosen == "json")
    wanted = ColumnType::json;
  else if (time)
    wanted = ColumnType::float64;
  else if (dtype_from(chosen, dtype))
    wanted = dtype == Dtype::boolean ? ColumnType::boolean
                                     : ColumnType::number(dtype);
  const ColumnType type = column.type;
  if (time && column.timestamp && !type.is_text()) return {type};
  if (type == wanted && !time) return {type};
  if (type.kind == ColumnKind::null) return {wanted, By::nulls};
  const bool number = is_number(type) || is_boolean(type);
  if (number && !wanted.is_text()) return {wanted, By::number};
  if (number && wanted == ColumnType::text) return {wanted, By::text};
  if (type.is_text() && wanted.is_text()) return {wanted};
  if (type.is_text()) return {wanted, time ? By::time : By::parsed};
  if (type.kind == ColumnKind::list && wanted == ColumnType::json)
    return {wanted, By::json};
  refuse(column, "source.columns." + column.name, chosen,
         "leave its type unchanged, or choose another type");
}

Column converted(Column&& from, const ServedColumn& to, std::size_t at,
                 std::vector<RowProblem>& found) {
  if (to.by == By::itself) {
    from.type.logical = to.type.logical;
    return std::move(from);
  }
  Problems problems(at, found);
  Column made{.type = to.type};
  switch (to.by) {
    case By::itself:
      break;
    case By::number:
      numbers(from, made, problems);
      break;
    case By::time:
      times(from, made, problems);
      break;
    case By::parsed:
      parsed(from, made, problems);
      break;
    case By::json:
      json(from, made);
      break;
    case By::text:
      texts(from, made);
      break;
    case By::stand_in:
      stand_ins(from, made);
      break;
    case By::nulls:
      for (std::int64_t row = 0; row < from.length; ++row) made.append_null();
      break;
  }
  return made;
}

}  // namespace penstock::files
