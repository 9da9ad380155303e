#include <algorithm>
#include <atomic>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/side_by_side.h"
#include "penstock/sources/text/cell_values.h"
#include "penstock/sources/text/text_file.h"

// A file is walked once for the ends of its rows, then some of its chunks for
// the types of its columns, and from then on chunk by chunk. A cell that is no
// value of its column's type is a problem of its row, with file and line, and
// so is a row with another number of cells than the header.

namespace penstock::text {
namespace {

using files::FileColumn;

struct CsvFile;

constexpr char kCloseMark[] =
    "close it, or set \"quote\": \"none\" if such marks are text";

/// '\0': there is none.
char quote_of(const FileSettings& settings) {
  return settings.quote == "none" || settings.quote.empty() ? '\0'
                                                            : settings.quote[0];
}

class CsvReader final : public files::ChunkReader {
 public:
  CsvReader(std::shared_ptr<const CsvFile> file,
            std::vector<std::size_t> columns);
  void read(std::int64_t chunk, const files::PieceSink& sink) override;

 private:
  std::string why(const CellProblem& problem, std::int64_t line);

  const std::shared_ptr<const CsvFile> file_;
  const std::vector<std::size_t> columns_;
  ChunkBuffer buffer_;
  CellGrid grid_;
  CellValues values_;
  std::vector<CellProblem> problems_;
  std::string plain_;
};

struct CsvFile final : files::RowFile, std::enable_shared_from_this<CsvFile> {
  CsvFile(const files::DataFile& file, const FileSettings& settings,
          StopFlag stop)
      : text(file, settings.encoding, stop),
        reader(settings.na, settings.decimal[0], quote_of(settings)) {
    read_header(settings);
    rows_found = find_rows(text, first_row, first_line, rules, stop);
  }

  const std::vector<FileColumn>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& chunk_ends() const override {
    return rows_found.ends;
  }
  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override {
    return std::make_unique<CsvReader>(shared_from_this(), columns);
  }

  std::string place_of(std::int64_t row) const override {
    return text.place(line_of_row(text, rows_found, rules, row));
  }

  /// False: its last row cannot be looked at.
  bool look(std::size_t chunk, std::vector<Looks>& looks) const;
  /// At some chunks, or all that is in them: true.
  bool look(std::size_t files, StopFlag stop, std::vector<Looks>& looks) const;

  PlainText text;
  CellReader reader;
  RowRules rules;
  std::int64_t first_row = 0;  // offset of what follows the header
  std::int64_t first_line = 1;
  std::vector<std::string> names;
  std::vector<FileColumn> columns_;
  TextRows rows_found;

 private:
  void read_header(const FileSettings& settings);
  bool take_header(const FileSettings& settings, std::string_view start,
                   bool whole);
  void check_closed(std::string_view header) const;
  void check_names() const;
};

char delimiter_in(std::string_view line) {
  char best = ',';
  std::ptrdiff_t most = 0;
  for (char c : {',', '\t', ';', '|'})
    if (std::ptrdiff_t count = std::ranges::count(line, c); count > most) {
      most = count;
      best = c;
    }
  return best;
}

void CsvFile::read_header(const FileSettings& settings) {
  constexpr std::int64_t kLongest = 16 << 20;
  rules.quote = quote_of(settings);
  rules.delimiter = settings.delimiter == "tab"  ? '\t'
                    : settings.delimiter.empty() ? '\0'
                                                 : settings.delimiter[0];
  const std::int64_t most = std::min(text.size(), kLongest);
  for (std::int64_t size = 64 << 10;; size *= 16) {
    std::string start(static_cast<std::size_t>(std::min(size, most)), '\0');
    text.read(0, start.data(), start.size());
    if (take_header(settings, start, size >= most)) break;
  }
  check_names();
}

/// False: more than the file's start is needed.
bool CsvFile::take_header(const FileSettings& settings, std::string_view start,
                          bool whole) {
  const char* begin = start.data();
  const char* end = begin + start.size();
  if (start.starts_with(kByteOrderMark)) begin += kByteOrderMark.size();
  first_line = 1;
  for (;;) {
    if (begin == end && !whole) return false;
    if (begin == end)
      throw Error(ErrorKind::source,
                  {.code = "files.damaged",
                   .what = "cannot read '" + text.file().path + "'",
                   .where = text.file().path,
                   .why = "it has no line",
                   .next = "remove the file, or leave it out of source.path"});
    RowRules line = rules;
    if (line.delimiter == '\0') line.delimiter = ',';
    const char* next = line.end_of_row(begin, end);
    if (next == nullptr && !whole) return false;
    if (next == nullptr) next = end;
    std::string_view row = content_of(begin, next);
    if (!row.empty()) {
      if (rules.delimiter == '\0') rules.delimiter = delimiter_in(row);
      check_closed(row);
      std::string plain;
      for (std::string_view written : cells_of(row, rules)) {
        const Cell cell = cell_of(written, rules.quote, plain);
        names.push_back(settings.header && !cell.text.empty()
                            ? std::string(cell.text)
                            : "c" + std::to_string(names.size() + 1));
      }
      if (settings.header) {
        first_line += lines_in(begin, next);
        begin = next;
      }
      break;
    }
    first_line += lines_in(begin, next);
    begin = next;
  }
  first_row = begin - start.data();
  return true;
}

void CsvFile::check_closed(std::string_view header) const {
  CellGrid grid(rules, 1);
  grid.cut(header);
  if (grid.rows().back().cells > 0) return;
  throw Error(
      ErrorKind::source,
      {.code = "files.damaged",
       .what = "cannot read the first row of '" + text.file().path + "'",
       .where = text.place(first_line),
       .why = "its quotation mark is never closed: " + shown_text(header),
       .next = kCloseMark});
}

void CsvFile::check_names() const {
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  auto twice = std::ranges::adjacent_find(sorted);
  auto bad = std::ranges::find_if(
      names, [](const std::string& name) { return !is_utf8(name); });
  auto refuse = [&](const char* code, std::string why, std::string next) {
    throw Error(ErrorKind::source,
                {.code = code,
                 .what = "cannot use the names of the columns of '" +
                         text.file().path + "'",
                 .where = text.place(1),
                 .why = std::move(why),
                 .next = std::move(next)});
  };
  if (bad != names.end())
    refuse("files.encoding", "one of them is " + shown_text(*bad),
           "name the file's encoding as source.encoding: \"latin1\", "
           "\"cp1252\", \"utf-16\"");
  if (twice != sorted.end())
    refuse("files.header", "two of them are '" + *twice + "'",
           "give the columns different names, or set \"header\": false if the "
           "first line is a row");
}

bool CsvFile::look(std::size_t chunk, std::vector<Looks>& looks) const {
  ChunkBuffer buffer;
  CellGrid grid(rules, names.size());
  grid.cut(buffer.read(text, rows_found.chunks[chunk]));
  std::string plain;
  for (const CellGrid::Row& row : grid.rows())
    for (std::size_t c = 0; c < std::min<std::size_t>(row.cells, looks.size());
         ++c)
      if (looks[c] != Looks::text)
        looks[c] = wider(looks[c], reader.looks(grid.cell(row, c), plain));
  return grid.rows().empty() || grid.rows().back().cells > 0;
}

bool CsvFile::look(std::size_t files, StopFlag stop,
                   std::vector<Looks>& looks) const {
  const std::vector<std::size_t> chunks =
      looked_at(rows_found.chunks.size(), files);
  std::vector<std::vector<Looks>> of_chunks(chunks.size(), looks);
  std::atomic<bool> whole = chunks.size() == rows_found.chunks.size();
  side_by_side(chunks.size(), [&](std::size_t at) {
    end_if_stopped(stop);
    if (!look(chunks[at], of_chunks[at])) whole = false;
  });
  for (const std::vector<Looks>& of_chunk : of_chunks)
    for (std::size_t c = 0; c < looks.size(); ++c)
      looks[c] = wider(looks[c], of_chunk[c]);
  return whole;
}

CsvReader::CsvReader(std::shared_ptr<const CsvFile> file,
                     std::vector<std::size_t> columns)
    : file_(std::move(file)),
      columns_(std::move(columns)),
      grid_(file_->rules, file_->names.size()),
      values_(file_->reader, file_->columns_, file_->rules.quote, columns_) {}

void CsvReader::read(std::int64_t chunk, const files::PieceSink& sink) {
  const TextChunk& of =
      file_->rows_found.chunks[static_cast<std::size_t>(chunk)];
  grid_.cut(buffer_.read(file_->text, of));
  problems_.clear();
  Block block = values_.read(grid_, problems_);
  const char* counted = grid_.chunk().data();
  std::int64_t line = of.line;
  for (const CellProblem& problem : problems_) {
    const char* begin = grid_.text(grid_.rows()[problem.row]).data();
    line += lines_in(counted, begin);
    counted = begin;
    block.problems.push_back({static_cast<std::int64_t>(problem.row),
                              problem.column, why(problem, line)});
  }
  sink(std::move(block));
}

std::string CsvReader::why(const CellProblem& problem, std::int64_t line) {
  const CellGrid::Row& row = grid_.rows()[problem.row];
  const std::string place = file_->text.place(line);
  if (row.cells == 0)
    return "its quotation mark is never closed (" + place + ": " +
           shown_text(grid_.text(row)) + "); " + kCloseMark;
  if (problem.what == CellProblem::What::cells)
    return "its row has " + std::to_string(row.cells) +
           (row.cells == 1 ? " cell" : " cells") + ", expected " +
           std::to_string(file_->names.size()) + " (" + place + ": " +
           shown_text(grid_.text(row)) +
           "); a cell that holds the delimiter must stand in quotation marks";
  const FileColumn& column = file_->columns_[columns_[problem.column]];
  const Cell cell = cell_of(grid_.cell(row, columns_[problem.column]),
                            file_->rules.quote, plain_);
  const std::string found = "holds " + shown_text(cell.text);
  if (problem.what == CellProblem::What::encoding)
    return found + " (" + place + "); name its encoding as source.encoding";
  return found + " where " + expected_of(column) + " is expected (" + place +
         "); another type can be chosen: source.columns." + column.name;
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_csv(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  std::vector<std::shared_ptr<CsvFile>> opened;
  std::map<std::string, Looks> looks;  // over all files
  bool whole = true;
  for (const files::DataFile& file : data) {
    auto csv = std::make_shared<CsvFile>(file, settings, stop);
    std::vector<Looks> of_file(csv->names.size(), Looks::nothing);
    whole &= csv->look(data.size(), stop, of_file);
    for (std::size_t c = 0; c < of_file.size(); ++c) {
      Looks& all = looks.emplace(csv->names[c], Looks::nothing).first->second;
      all = wider(all, of_file[c]);
    }
    opened.push_back(std::move(csv));
  }
  std::vector<std::shared_ptr<const files::RowFile>> all;
  for (const auto& csv : opened) {
    for (const std::string& name : csv->names) {
      std::string chosen = chosen_for(settings, name);
      Looks as = looks[name];
      // What was not looked at may hold anything.
      if (as == Looks::nothing && !whole) as = Looks::text;
      csv->columns_.push_back(chosen.empty() ? column_that_looks(name, as)
                                             : column_chosen(name, chosen));
    }
    all.push_back(csv);
  }
  return all;
}

}  // namespace penstock::text
