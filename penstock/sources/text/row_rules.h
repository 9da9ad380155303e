#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::text {

/// Lines that end between two bytes.
std::int64_t lines_in(const char* begin, const char* end);

/// How rows of text end: at the end of a line, unless that is within quotation
/// marks. They count where a cell begins.
struct RowRules {
  char delimiter = '\0';  ///< '\0': a line is a row, whatever is in it
  char quote = '\0';      ///< '\0': none

  /// Behind the end of the row that begins at `begin`, its "\n" included; null
  /// where it has no end before `end`.
  const char* end_of_row(const char* begin, const char* end) const;
  /// The lines of a row, which holds several only in quotation marks.
  std::int64_t lines_of(const char* begin, const char* end) const {
    return quote == '\0' ? 1 : lines_in(begin, end);
  }
};

/// A row without the "\n" or "\r\n" at its end.
inline std::string_view content_of(const char* begin, const char* end) {
  if (end > begin && end[-1] == '\n') --end;
  if (end > begin && end[-1] == '\r') --end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

/// `work(row, line)` for each row of a chunk that is not empty. `line` is that
/// of the first byte.
template <class Work>
void each_row(std::string_view chunk, const RowRules& rules, std::int64_t line,
              const Work& work) {
  const char* end = chunk.data() + chunk.size();
  for (const char* at = chunk.data(); at < end;) {
    const char* next = rules.end_of_row(at, end);
    if (next == nullptr) next = end;  // the last row may lack its end
    const std::string_view row = content_of(at, next);
    if (!row.empty()) work(row, line);
    line += rules.lines_of(at, next);
    at = next;
  }
}

}  // namespace penstock::text
