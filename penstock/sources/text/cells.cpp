#include "penstock/sources/text/cells.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
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

// RFC 4180, section 2: a cell that holds a delimiter, a line end or a mark
// stands in marks, and a mark inside is doubled. What follows a closing mark up
// to the delimiter is against the RFC, but written; it is appended, as Python's
// csv module does.
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

// A lattice: nothing is below all; integers are below reals; every other pair
// meets in text. So the order in which cells are seen cannot change the result,
// nor can the division among threads.
Looks wider(Looks a, Looks b) {
  if (a == b || b == Looks::nothing) return a;
  if (a == Looks::nothing) return b;
  if (a > b) std::swap(a, b);
  return a == Looks::integer && b == Looks::real ? b : Looks::text;
}

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What follows "1,234,567", whose thousands are grouped by `mark`; nullopt:
/// the text does not begin so. One to three digits, then groups of the mark and
/// just three digits: 1,234 and 12,345,678, but not 1,23 or 1234,567. So a list
/// of small numbers that lacks its quotation marks is not taken for one large
/// number.
std::optional<std::string_view> after_groups(std::string_view text, char mark) {
  std::size_t at = text.find(mark);
  if (at == text.npos || at > 3 || !all_digits(text.substr(0, at)))
    return std::nullopt;
  for (; at < text.size() && text[at] == mark; at += 4)
    if (text.size() < at + 4 || !all_digits(text.substr(at + 1, 3)))
      return std::nullopt;
  return text.substr(at);
}

bool is_fraction(std::string_view text, char point) {
  return text.starts_with(point) && all_digits(text.substr(1));
}

/// Of a cell that is neither a number, a boolean nor a time.
Looks text_looks(std::string_view text, char decimal) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (const auto rest = after_groups(text, '.');
      rest && (rest->empty() || is_fraction(*rest, ',')))
    return Looks::points;
  if (decimal == ',') return Looks::text;
  if (const auto rest = after_groups(text, ',')) {
    const bool one = std::ranges::count(text, ',') == 1;
    if (rest->empty()) return one ? Looks::grouped : Looks::commas;
    if (is_fraction(*rest, '.')) return Looks::commas;
  }
  const std::size_t at = std::min(text.find(','), text.size());
  return all_digits(text.substr(0, at)) && is_fraction(text.substr(at), ',')
             ? Looks::comma
             : Looks::text;
}

}  // namespace

// `plain_numbers_` is true where no quotation mark and no word for a missing
// value can look like a number ("-999" can): then a cell that reads as a number
// needs no other check.
CellReader::CellReader(const std::vector<std::string>& na, char decimal,
                       char quote, char thousands)
    : na_(na), decimal_(decimal), quote_(quote), thousands_(thousands) {
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
  std::string plain;
  if (thousands_ != '\0' && text.find(thousands_) != text.npos) {
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    const auto rest = after_groups(text.substr(sign), thousands_);
    if (!rest || !(rest->empty() || rest->starts_with(decimal_))) return false;
    if (rest->find(thousands_) != rest->npos) return false;
    std::ranges::remove_copy(text, std::back_inserter(plain), thousands_);
    text = plain;
  }
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
  return thousands_ != '\0' ? Looks::text
                            : text_looks(trimmed(cell.text), decimal_);
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
