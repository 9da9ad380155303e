#include "penstock/sources/text/csv_header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "penstock/base/ascii.h"
#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/text/cells.h"
#include "penstock/sources/text/marks.h"

namespace penstock::text {
namespace {

constexpr char kDelimiters[] = {',', '\t', ';', '|'};
constexpr std::size_t kRowsLookedAt = 100;

/// The beginning of a file: a header, and some rows.
class CsvStart {
 public:
  /// `whole`: there is nothing behind it.
  CsvStart(const PlainText& text, const FileSettings& settings,
           std::string_view start, bool whole)
      : text_(text),
        settings_(settings),
        start_(start),
        whole_(whole),
        at_(start.data()) {}

  /// False: more of the file is needed.
  bool read(CsvHeader& to);

 private:
  const char* end() const { return start_.data() + start_.size(); }
  bool skip_lines(CsvHeader& to);
  bool find_delimiter(RowRules& rules) const;
  bool has_row_names(const RowRules& rules,
                     const std::vector<std::string_view>& names,
                     const char* rows) const;
  bool is_like_row(const RowRules& rules,
                   const std::vector<std::string_view>& names,
                   const char* rows) const;
  void check_closed(const RowRules& rules, std::string_view header,
                    std::int64_t line) const;
  /// The rows from `at` on that are there as a whole, some hundred at most;
  /// `work` gives false to end it.
  template <class Work>
  void each_whole_row(const RowRules& rules, const char* at,
                      const Work& work) const;

  const PlainText& text_;
  const FileSettings& settings_;
  const std::string_view start_;
  const bool whole_;
  const char* at_;
};

/// What Excel's first line names as the delimiter: "sep=;"; '\0': it is another
/// line.
char delimiter_named_by(std::string_view line) {
  if (line.size() == 7 && line.front() == '"' && line.back() == '"')
    line = line.substr(1, 5);
  return line.size() == 5 && ascii_lower(line.substr(0, 4)) == "sep=" ? line[4]
                                                                      : '\0';
}

/// Integers, each the one before it and 1; an empty one does not count.
bool count_up(const std::vector<std::string_view>& names, char quote) {
  std::optional<std::int64_t> last;
  const CellReader reader({}, '.', quote);
  for (std::string_view written : names) {
    const std::string_view name = inside(written, quote);
    if (name.empty()) continue;
    std::int64_t number = 0;
    if (!reader.number(name, number) || (last && number != *last + 1))
      return false;
    last = number;
  }
  return last && (*last <= 1 || names.size() > 1);
}

/// Goes to the header: to the first line that is not empty and not Excel's.
bool CsvStart::skip_lines(CsvHeader& to) {
  if (start_.starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
  for (bool named = false;;) {
    if (at_ == end() && !whole_) return false;
    if (at_ == end())
      throw Error(ErrorKind::source,
                  {.code = "files.damaged",
                   .what = "cannot read the CSV file",
                   .where = text_.file().path,
                   .why = "the file is empty",
                   .next = "remove the file, or leave it out of source.path"});
    const char* next = RowRules().end_of_row(at_, end());
    if (next == nullptr && !whole_) return false;
    if (next == nullptr) next = end();
    const std::string_view line = content_of(at_, next);
    if (!line.empty()) {
      const char delimiter = named ? '\0' : delimiter_named_by(line);
      if (delimiter == '\0') return true;
      named = true;
      if (to.rules.delimiter == '\0') to.rules.delimiter = delimiter;
    }
    ++to.first_line;
    at_ = next;
  }
}

template <class Work>
void CsvStart::each_whole_row(const RowRules& rules, const char* at,
                              const Work& work) const {
  for (std::size_t rows = 0; rows < kRowsLookedAt && at < end();) {
    const char* next = rules.end_of_row(at, end());
    if (next == nullptr && !whole_) return;
    if (next == nullptr) next = end();
    const std::string_view row = content_of(at, next);
    if (!row.empty() && (++rows, !work(cells_of(row, rules)))) return;
    at = next;
  }
}

/// The delimiter by which the most rows have as many cells as the header, and
/// these are more than one. Where no row has, the one that the header has most
/// of. What stands in quotation marks does not count.
bool CsvStart::find_delimiter(RowRules& rules) const {
  if (rules.delimiter != '\0') return true;
  std::pair<std::size_t, std::size_t> most(0, 1);
  char best = kDelimiters[0];
  for (char delimiter : kDelimiters) {
    RowRules tried = rules;
    tried.delimiter = delimiter;
    if (tried.end_of_row(at_, end()) == nullptr && !whole_) return false;
    std::size_t header = 0, like_it = 0;
    each_whole_row(tried, at_, [&](const auto& cells) {
      if (header == 0)
        header = cells.size();
      else
        like_it += cells.size() == header;
      return header > 1;
    });
    const std::pair<std::size_t, std::size_t> found(like_it * header, header);
    if (header < 2 || found <= most) continue;
    most = found;
    best = delimiter;
  }
  rules.delimiter = best;
  return true;
}

/// Whether all rows have one cell more than the header, and the first says
/// which row it is. R writes these names, and those of columns, in quotation
/// marks. Without marks, a comma in a text would look the same.
bool CsvStart::has_row_names(const RowRules& rules,
                             const std::vector<std::string_view>& names,
                             const char* rows) const {
  const auto quoted = [&](std::string_view cell) {
    return rules.quote != '\0' && cell.starts_with(rules.quote);
  };
  if (!std::ranges::all_of(names, quoted)) return false;
  std::set<std::string_view> first;
  bool good = true;
  each_whole_row(rules, rows, [&](const auto& cells) {
    return good = cells.size() == names.size() + 1 && quoted(cells[0]) &&
                  first.insert(cells[0]).second;
  });
  return good && !first.empty();
}

bool CsvStart::is_like_row(const RowRules& rules,
                           const std::vector<std::string_view>& names,
                           const char* rows) const {
  const CellReader reader(settings_.na, settings_.decimal[0], rules.quote,
                          thousands_of(settings_));
  std::string plain;
  auto is_number = [&](std::string_view cell) {
    const Looks looks = reader.looks(cell_of(cell, rules.quote, plain));
    return looks == Looks::integer || looks == Looks::real;
  };
  std::vector<bool> numbers, again;
  for (std::string_view name : names) {
    numbers.push_back(is_number(name));
    again.push_back(inside(name, rules.quote).empty());
  }
  if (count_up(names, rules.quote)) return false;
  bool good = std::ranges::count(again, false) > 0;
  each_whole_row(rules, rows, [&](const auto& cells) {
    for (std::size_t c = 0; c < std::min(cells.size(), names.size()); ++c) {
      const bool nothing = reader.is_na(cell_of(cells[c], rules.quote, plain));
      if (numbers[c] && !nothing) {
        again[c] = true;
        good = good && is_number(cells[c]);
      }
      if (!numbers[c]) again[c] = again[c] || cells[c] == names[c];
    }
    return good;
  });
  return good && std::ranges::count(again, false) == 0;
}

bool CsvStart::read(CsvHeader& to) {
  if (!skip_lines(to) || !find_delimiter(to.rules)) return false;
  const char* next = to.rules.end_of_row(at_, end());
  if (next == nullptr && !whole_) return false;
  if (next == nullptr) next = end();
  const std::string_view header = content_of(at_, next);
  check_closed(to.rules, header, to.first_line);
  std::vector<std::string_view> cells = cells_of(header, to.rules);
  if (settings_.header) {
    if (has_row_names(to.rules, cells, next)) cells.insert(cells.begin(), "");
    to.first_unnamed = inside(cells[0], to.rules.quote).empty();
    to.like_row = is_like_row(to.rules, cells, next);
    to.first_line += lines_in(at_, next);
    at_ = next;
  }
  std::string plain;
  for (std::string_view written : cells) {
    const Cell cell = cell_of(written, to.rules.quote, plain);
    to.names.push_back(settings_.header && !cell.text.empty()
                           ? std::string(cell.text)
                           : "c" + std::to_string(to.names.size() + 1));
  }
  to.first_row = at_ - start_.data();
  return true;
}

void CsvStart::check_closed(const RowRules& rules, std::string_view header,
                            std::int64_t line) const {
  CellGrid grid(rules, 1);
  grid.cut(header);
  if (grid.rows().back().cells > 0) return;
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot read the first row",
               .where = text_.place(line),
               .why = "a quotation mark is never closed: " + shown_text(header),
               .next = kCloseMark});
}

void check_names(const PlainText& text, const std::vector<std::string>& names) {
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::ranges::sort(sorted);
  auto twice = std::ranges::adjacent_find(sorted);
  auto bad = std::ranges::find_if(
      names, [](const std::string& name) { return !is_utf8(name); });
  auto refuse = [&](const char* code, std::string why, std::string next) {
    throw Error(ErrorKind::source, {.code = code,
                                    .what = "cannot use the column names",
                                    .where = text.place(1),
                                    .why = std::move(why),
                                    .next = std::move(next)});
  };
  if (bad != names.end())
    refuse("files.encoding", "the name of a column is " + shown_text(*bad),
           "name the file's encoding as source.encoding: \"latin1\", "
           "\"cp1252\", \"utf-16\"");
  if (twice != sorted.end())
    refuse("files.header",
           "two columns are named '" + std::string(*twice) + "'",
           "give the columns different names, or set \"header\": false if the "
           "first line is a row");
}

}  // namespace

char quote_of(const FileSettings& settings) {
  return settings.quote == "none" || settings.quote.empty() ? '\0'
                                                            : settings.quote[0];
}

char delimiter_of(const FileSettings& settings) {
  return settings.delimiter == "tab"  ? '\t'
         : settings.delimiter.empty() ? '\0'
                                      : settings.delimiter[0];
}

char thousands_of(const FileSettings& settings) {
  return settings.thousands.empty() ? '\0' : settings.thousands[0];
}

// The beginning is read again, 16 times as long, until the header and some rows
// are whole. A header of more than 16 MiB is not looked for: then what is there
// counts as the whole file, and an open quotation mark is reported.
CsvHeader read_csv_header(const PlainText& text, const FileSettings& settings) {
  constexpr std::int64_t kLongest = 16 << 20;
  const std::int64_t most = std::min(text.size(), kLongest);
  for (std::int64_t size = 64 << 10;; size *= 16) {
    std::string start(static_cast<std::size_t>(std::min(size, most)), '\0');
    text.read(0, start.data(), start.size());
    CsvHeader header;
    header.rules.quote = quote_of(settings);
    header.rules.delimiter = delimiter_of(settings);
    if (!CsvStart(text, settings, start, size >= most).read(header)) continue;
    check_names(text, header.names);
    return header;
  }
}

}  // namespace penstock::text
