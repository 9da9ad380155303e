#include "penstock/sources/text/cells.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "penstock/sources/timestamp.h"

namespace penstock::text {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

const std::vector<Cell>& Cells::split(std::string_view row) {
  cells_.clear();
  if (rules_.quote != '\0' &&
      std::memchr(row.data(), rules_.quote, row.size()) != nullptr) {
    split_quoted(row);
    return cells_;
  }
  // Cells are short: a loop over bytes is faster than a search for each.
  const char* begin = row.data();
  const char* end = begin + row.size();
  const char* from = begin;
  for (const char* at = begin; at < end; ++at)
    if (*at == rules_.delimiter) {
      cells_.push_back({{from, static_cast<std::size_t>(at - from)}});
      from = at + 1;
    }
  cells_.push_back({{from, static_cast<std::size_t>(end - from)}});
  return cells_;
}

void Cells::split_quoted(std::string_view row) {
  plain_.clear();
  plain_.reserve(row.size());  // views into it stay
  for (std::size_t at = 0;;) {
    Cell cell;
    if (at < row.size() && row[at] == rules_.quote) {
      cell.quoted = true;
      const std::size_t begin = plain_.size();
      for (++at; at < row.size(); ++at) {
        if (row[at] == rules_.quote) {
          if (at + 1 == row.size() || row[at + 1] != rules_.quote) break;
          ++at;
        }
        plain_ += row[at];
      }
      ++at;
      // What follows the closing mark belongs to the cell.
      while (at < row.size() && row[at] != rules_.delimiter)
        plain_ += row[at++];
      cell.text = std::string_view(plain_).substr(begin);
    } else {
      std::size_t end = std::min(row.find(rules_.delimiter, at), row.size());
      cell.text = row.substr(at, end - at);
      at = end;
    }
    cells_.push_back(cell);
    if (at >= row.size()) return;
    ++at;  // the delimiter: another cell follows, if an empty one
  }
}

Looks wider(Looks a, Looks b) {
  if (a == b || b == Looks::nothing) return a;
  if (a == Looks::nothing) return b;
  const bool numbers = (a == Looks::integer || a == Looks::real) &&
                       (b == Looks::integer || b == Looks::real);
  return numbers ? Looks::real : Looks::text;
}

CellReader::CellReader(const std::vector<std::string>& na, char decimal)
    : na_(na), decimal_(decimal) {
  std::ranges::sort(na_);
  for (const std::string& word : na_) {
    if (word.empty())
      empty_is_na_ = true;
    else
      starts_na_[static_cast<unsigned char>(word[0])] = true;
  }
}

bool CellReader::is_na(const Cell& cell) const {
  if (cell.quoted) return false;
  if (cell.text.empty()) return empty_is_na_;
  return starts_na_[static_cast<unsigned char>(cell.text[0])] &&
         std::ranges::binary_search(na_, cell.text, std::less<>());
}

template <class Integer>
bool CellReader::integer(std::string_view text, Integer& value) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end;
}

template <class Real>
bool CellReader::real(std::string_view text, Real& value) const {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  char point[64];
  if (decimal_ != '.' && text.size() <= sizeof(point)) {
    if (text.find('.') != text.npos) return false;
    std::ranges::replace_copy(text, point, decimal_, '.');
    text = {point, text.size()};
  }
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end;
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
  if (integer(cell.text, integer_value)) return Looks::integer;
  std::string_view digits_of = trimmed(cell.text);
  if (digits_of.starts_with('-') || digits_of.starts_with('+'))
    digits_of.remove_prefix(1);
  const bool digits = !digits_of.empty() && digits_of.find_first_not_of(
                                                "0123456789") == digits_of.npos;
  // A number of more digits than an integer has would lose some as a float64.
  if (digits) return Looks::text;
  if (real(cell.text, real_value)) return Looks::real;
  if (boolean(cell.text, boolean_value)) return Looks::boolean;
  return timestamp_from(cell.text) ? Looks::time : Looks::text;
}

template bool CellReader::integer(std::string_view, std::int8_t&);
template bool CellReader::integer(std::string_view, std::int16_t&);
template bool CellReader::integer(std::string_view, std::int32_t&);
template bool CellReader::integer(std::string_view, std::int64_t&);
template bool CellReader::integer(std::string_view, std::uint8_t&);
template bool CellReader::integer(std::string_view, std::uint16_t&);
template bool CellReader::integer(std::string_view, std::uint32_t&);
template bool CellReader::integer(std::string_view, std::uint64_t&);
template bool CellReader::real(std::string_view, float&) const;
template bool CellReader::real(std::string_view, double&) const;

}  // namespace penstock::text
