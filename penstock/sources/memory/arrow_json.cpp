#include "penstock/sources/memory/arrow_json.h"

#include <string_view>

#include "penstock/base/json.h"
#include "penstock/base/with_number.h"
#include "penstock/sources/decimal.h"
#include "penstock/sources/memory/arrow_layout.h"

namespace penstock {
namespace {

using namespace arrow_layout;

/// As Arrow writes a decimal: 1.50, 0.0025, 1E-9.
std::string with_point(std::string digits, int scale) {
  const auto count = static_cast<int>(digits.size());
  const int exponent = count - 1 - scale;
  if (scale == 0) return digits;
  if (scale < 0 || exponent < -6) {
    if (count > 1) digits.insert(1, ".");
    return digits + "E" + (exponent >= 0 ? "+" : "") + std::to_string(exponent);
  }
  if (count > scale)
    return digits.insert(static_cast<std::size_t>(count - scale), ".");
  return "0." + std::string(static_cast<std::size_t>(scale - count), '0') +
         digits;
}

void append_decimal(const DecimalUnits& units, int scale, std::string& text) {
  if (units.negative) text += '-';
  text += with_point(digits_of(units), scale);
}

void append_text(std::string_view value, std::string& text) {
  text += Json(value).dump();
}

void append_elements(const ArrowSchema& schema, const ArrowArray& array,
                     std::int64_t begin, std::int64_t end, std::string& text) {
  const ArrowArray& child = *array.children[0];
  text += '[';
  for (std::int64_t at = begin; at < end; ++at) {
    if (at > begin) text += ',';
    append_json(*schema.children[0], child, child.offset + at, text);
  }
  text += ']';
}

void append_struct(const ArrowSchema& schema, const ArrowArray& array,
                   std::int64_t at, std::string& text) {
  text += '{';
  for (std::int64_t c = 0; c < schema.n_children; ++c) {
    const ArrowSchema& member = *schema.children[c];
    const ArrowArray& child = *array.children[c];
    if (c > 0) text += ',';
    append_text(member.name != nullptr ? member.name : "", text);
    text += ':';
    append_json(member, child, child.offset + at, text);
  }
  text += '}';
}

bool is_text(std::string_view format) {
  return format == "u" || format == "U" || format == "vu";
}

bool is_list(std::string_view format) {
  return format == "+l" || format == "+L" || format == "+m";
}

}  // namespace

bool has_json(const ArrowSchema& schema) {
  if (schema.dictionary != nullptr) return has_json(*schema.dictionary);
  const std::string_view format = schema.format;
  if (number_of(format) || decimal_of(format) || is_text(format) ||
      format == "n" || format == "b" || format == "e")
    return true;
  if (!is_list(format) && format != "+s" && !size_behind("+w:", format))
    return false;
  if (format != "+s" && schema.n_children != 1) return false;
  for (std::int64_t c = 0; c < schema.n_children; ++c)
    if (!has_json(*schema.children[c])) return false;
  return true;
}

void append_json(const ArrowSchema& schema, const ArrowArray& array,
                 std::int64_t at, std::string& text) {
  const std::string_view format = schema.format;
  if (format == "n" || !valid_at(array, at)) {
    text += "null";
  } else if (schema.dictionary != nullptr) {
    append_json(*schema.dictionary, *array.dictionary,
                dictionary_place(schema, array, at), text);
  } else if (const auto number = number_of(format)) {
    with_number(*number, [&]<class Number>(Typed<Number>) {
      append_json_number(value_at<Number>(array, 1, at), text);
    });
  } else if (format == "b") {
    text += bit_at(array.buffers[1], at) ? "true" : "false";
  } else if (format == "e") {
    append_json_number(half_at(array, at), text);
  } else if (const auto decimal = decimal_of(format)) {
    append_decimal(decimal_at(array, decimal->width, at), decimal->scale, text);
  } else if (is_text(format)) {
    append_text(format == "vu" ? view_at(array, at)
                               : text_at(array, is_wide(format), at),
                text);
  } else if (const auto size = size_behind("+w:", format)) {
    append_elements(schema, array, at * *size, (at + 1) * *size, text);
  } else if (is_list(format)) {
    append_elements(schema, array, offset_at(array, is_wide(format), at),
                    offset_at(array, is_wide(format), at + 1), text);
  } else {
    append_struct(schema, array, at, text);
  }
}

}  // namespace penstock
