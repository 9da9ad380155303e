#include "penstock/sources/text/cells.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "penstock/base/real_number.h"
#include "penstock/sources/timestamp.h"

namespace penstock::text {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

Cell cell_of(std::string_view written, char quote, std::string& plain) {
  if (quote == '\0' || !written.starts_with(quote)) return {written};
  plain.clear();
  std::size_t at = 1;
  for (; at < written.size(); ++at) {
    if (written[at] == quote) {
      // Two marks stand for one.
      if (at + 1 == written.size() || written[at + 1] != quote) break;
      ++at;
    }
    plain += written[at];
  }
  // What follows the closing mark belongs to the cell.
  if (at < written.size()) plain += written.substr(at + 1);
  return {plain, true};
}

std::vector<std::string_view> cells_of(std::string_view row,
                                       const RowRules& rules) {
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0;;) {
    std::size_t at = begin;
    if (rules.quote != '\0' && at < row.size() && row[at] == rules.quote)
      for (++at;; at += 2) {
        at = std::min(row.find(rules.quote, at), row.size());
        if (at + 1 >= row.size() || row[at + 1] != rules.quote) break;
      }
    const std::size_t end = std::min(row.find(rules.delimiter, at), row.size());
    cells.push_back(row.substr(begin, end - begin));
    if (end == row.size()) return cells;
    begin = end + 1;  // another cell follows, if an empty one
  }
}

Looks wider(Looks a, Looks b) {
  if (a == b || b == Looks::nothing) return a;
  if (a == Looks::nothing) return b;
  if (a > b) std::swap(a, b);
  if (a == Looks::integer && b == Looks::real) return b;
  const bool with_comma = b == Looks::comma || b == Looks::grouped;
  const bool widens = a == Looks::integer || a == Looks::grouped;
  return with_comma && widens ? b : Looks::text;
}

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Of a cell that is neither a number, a boolean nor a time.
Looks text_looks(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t at = text.find(',');
  if (at == text.npos || !all_digits(text.substr(0, at)) ||
      !all_digits(text.substr(at + 1)))
    return Looks::text;
  const bool thousands = text.size() - at == 4 && at <= 3;
  return thousands ? Looks::grouped : Looks::comma;
}

}  // namespace

CellReader::CellReader(const std::vector<std::string>& na, char decimal,
                       char quote)
    : na_(na), decimal_(decimal), quote_(quote) {
  plain_numbers_ =
      std::string_view("-0123456789.,").find(quote) == std::string_view::npos;
  std::ranges::sort(na_);
  for (const std::string& word : na_) {
    if (word.empty())
      empty_is_na_ = true;
    else
      starts_na_[static_cast<unsigned char>(word[0])] = true;
    double value = 0;
    if (number(word, value) && std::isfinite(value)) plain_numbers_ = false;
  }
}

bool CellReader::is_na(const Cell& cell) const {
  if (cell.quoted) return false;
  if (cell.text.empty()) return empty_is_na_;
  return starts_na_[static_cast<unsigned char>(cell.text[0])] &&
         std::ranges::binary_search(na_, cell.text, std::less<>());
}

template <class Number>
bool CellReader::number(std::string_view text, Number& value) const {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  char point[64];
  if (std::is_floating_point_v<Number> && decimal_ != '.' &&
      text.size() <= sizeof(point)) {
    if (text.find('.') != text.npos) return false;
    std::ranges::replace_copy(text, point, decimal_, '.');
    text = {point, text.size()};
  }
  const char* end = text.data() + text.size();
  std::from_chars_result read;
  if constexpr (std::is_floating_point_v<Number>)
    read = real_from_chars(text.data(), end, value);
  else
    read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

bool CellReader::boolean(std::string_view text, bool& value) {
  text = trimmed(text);
  for (const char* yes : {"true", "True", "TRUE"})
    if (text == yes) return value = true;
  for (const char* no : {"false", "False", "FALSE"})
    if (text == no) {
      value = false;
      return true;
    }
  return false;
}

Looks CellReader::looks(const Cell& cell) const {
  if (is_na(cell) || cell.text.empty()) return Looks::nothing;
  std::int64_t integer_value = 0;
  double real_value = 0;
  bool boolean_value = false;
  if (number(cell.text, integer_value)) return Looks::integer;
  std::string_view digits_of = trimmed(cell.text);
  if (digits_of.starts_with('-') || digits_of.starts_with('+'))
    digits_of.remove_prefix(1);
  // A number of more digits than an integer has would lose some as a float64.
  if (all_digits(digits_of)) return Looks::text;
  if (number(cell.text, real_value)) return Looks::real;
  if (boolean(cell.text, boolean_value)) return Looks::boolean;
  if (timestamp_from(cell.text)) return Looks::time;
  return decimal_ == ',' ? Looks::text : text_looks(trimmed(cell.text));
}

Looks CellReader::looks(std::string_view written, std::string& plain) const {
  PlainDecimal decimal;
  const std::string_view number = inside(written, quote_);
  const char* begin = number.data();
  if (plain_numbers_ &&
      plain_decimal(begin, begin + number.size(), decimal_, decimal)) {
    if (decimal.point) return Looks::real;
    if (decimal.digits <= std::numeric_limits<std::int64_t>::max())
      return Looks::integer;
  }
  return looks(cell_of(written, quote_, plain));
}

template bool CellReader::number(std::string_view, std::int8_t&) const;
template bool CellReader::number(std::string_view, std::int16_t&) const;
template bool CellReader::number(std::string_view, std::int32_t&) const;
template bool CellReader::number(std::string_view, std::int64_t&) const;
template bool CellReader::number(std::string_view, std::uint8_t&) const;
template bool CellReader::number(std::string_view, std::uint16_t&) const;
template bool CellReader::number(std::string_view, std::uint32_t&) const;
template bool CellReader::number(std::string_view, std::uint64_t&) const;
template bool CellReader::number(std::string_view, float&) const;
template bool CellReader::number(std::string_view, double&) const;

}  // namespace penstock::text
