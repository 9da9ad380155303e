#include <algorithm>
#include <map>
#include <set>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/side_by_side.h"
#include "penstock/sources/text/cell_values.h"
#include "penstock/sources/text/csv_header.h"
#include "penstock/sources/text/csv_uri.h"
#include "penstock/sources/text/seen_cells.h"
#include "penstock/sources/text/text_file.h"

// A file is walked once for the ends of its rows, then some of its chunks for
// the types of its columns, and from then on chunk by chunk. A cell that is no
// value of its column's type is a problem of its row, with file and line, and
// so is a row with another number of cells than the header.

namespace penstock::text {
namespace {

using files::FileColumn;

struct CsvFile;

constexpr char kOneLineEnd[] =
    "a carriage return does not end a row in this file, since the first line "
    "ends with a line feed: use one kind of line end, or put the cell in "
    "quotation marks";

class CsvReader final : public files::ChunkReader {
 public:
  CsvReader(std::shared_ptr<const CsvFile> file,
            std::vector<std::size_t> columns);
  void read(std::int64_t chunk, const files::PieceSink& sink) override;

 private:
  std::string why(const CellProblem& problem, std::int64_t line);
  std::string next_to_cells(const CellGrid::Row& row) const;

  const std::shared_ptr<const CsvFile> file_;
  const std::vector<std::size_t> columns_;
  ChunkBuffer buffer_;
  CellGrid grid_;
  CellValues values_;
  std::vector<CellProblem> problems_;
  std::string plain_;
};

/// What was seen of a file, or of a part of it. Parts are looked at by several
/// threads and joined in their order, so "the first cell of this kind" is the
/// first one in the file.
struct LookedAt {
  std::vector<SeenCells> columns;
  bool whole = true;       ///< nothing else is there
  bool counts_up = false;  ///< the numbers of its first column, each by 1
};

/// Whether the first cells of all rows are integers, each the one before it
/// and 1.
bool rows_are_numbered(const CellGrid& grid, const CellReader& reader,
                       char quote) {
  std::int64_t last = 0, number = 0;
  std::string plain;
  for (std::size_t row = 0; row < grid.rows().size(); ++row) {
    if (grid.rows()[row].cells == 0) return false;
    const Cell cell = cell_of(grid.cell(grid.rows()[row], 0), quote, plain);
    if (!reader.number(cell.text, number) || (row > 0 && number != last + 1))
      return false;
    last = number;
  }
  return grid.rows().size() > 1;
}

struct CsvFile final : files::RowFile, std::enable_shared_from_this<CsvFile> {
  CsvFile(const files::DataFile& file, const FileSettings& settings,
          StopFlag stop)
      : text(file, settings.encoding, stop,
             QuotationMarks(quote_of(settings), delimiter_of(settings))),
        reader(settings.na, settings.decimal[0], quote_of(settings),
               thousands_of(settings)),
        header(read_csv_header(text, settings)),
        rules(header.rules),
        names(header.names),
        rows_found(
            find_rows(text, header.first_row, header.first_line, rules, stop)) {
    facts_.chunk_ends = rows_found.ends;
  }

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override {
    return std::make_unique<CsvReader>(shared_from_this(), columns);
  }

  std::string place_of(std::int64_t row) const override {
    return text.place(line_of_row(text, rows_found, rules, row));
  }
  /// `guessed`: their types, from parts of the files.
  void set_columns(std::vector<FileColumn> columns, bool guessed);

  void doubt(Doubt doubt) { facts_.doubts.push_back(std::move(doubt)); }

  /// At one chunk. `file`: which of the source this is.
  LookedAt look(std::size_t chunk, std::size_t file) const;
  /// At some, or at all.
  LookedAt look(std::size_t file, std::size_t files, StopFlag stop) const;

  PlainText text;
  CellReader reader;
  const CsvHeader header;
  const RowRules& rules;
  const std::vector<std::string>& names;
  const TextRows rows_found;
};

void CsvFile::set_columns(std::vector<FileColumn> columns, bool guessed) {
  facts_.columns = std::move(columns);
  if (guessed)
    facts_.left_out.push_back({.name = "types of columns",
                               .why = "types were determined from parts of the "
                                      "file, and other cells may not fit",
                               .next = "give the types as source.columns"});
}

LookedAt CsvFile::look(std::size_t chunk, std::size_t file) const {
  LookedAt found{.columns = std::vector<SeenCells>(names.size())};
  ChunkBuffer buffer;
  CellGrid grid(rules, names.size());
  grid.cut(buffer.read(text, rows_found.chunks[chunk]));
  const auto rows = std::ssize(grid.rows());
  const std::int64_t first = rows_found.ends[chunk] - rows;
  std::string plain;
  for (std::int64_t at = 0; at < rows; ++at) {
    const CellGrid::Row& row = grid.rows()[static_cast<std::size_t>(at)];
    for (std::size_t c = 0; c < std::min<std::size_t>(row.cells, names.size());
         ++c) {
      SeenCells& seen = found.columns[c];
      if (seen.stopped()) continue;
      const std::string_view cell = grid.cell(row, c);
      seen.add(reader.looks(cell, plain), cell, {file, first + at});
      // Nearly all cells cannot be numbers any more.
      if (seen.cells(Looks::text) > std::max<std::int64_t>(rows / 10, 1))
        seen.stop();
    }
  }
  found.whole = rows == 0 || grid.rows().back().cells > 0;
  found.counts_up =
      header.first_unnamed && rows_are_numbered(grid, reader, rules.quote);
  return found;
}

LookedAt CsvFile::look(std::size_t file, std::size_t files,
                       StopFlag stop) const {
  const std::vector<std::size_t> chunks =
      looked_at(rows_found.chunks.size(), files);
  std::vector<LookedAt> of_chunks(chunks.size());
  side_by_side(chunks.size(), [&](std::size_t at) {
    end_if_stopped(stop);
    of_chunks[at] = look(chunks[at], file);
  });
  LookedAt all{.columns = std::vector<SeenCells>(names.size()),
               .whole = chunks.size() == rows_found.chunks.size(),
               .counts_up = !chunks.empty()};
  for (const LookedAt& of_chunk : of_chunks) {
    for (std::size_t c = 0; c < names.size(); ++c)
      all.columns[c].add(of_chunk.columns[c]);
    all.whole = all.whole && of_chunk.whole;
    all.counts_up = all.counts_up && of_chunk.counts_up;
  }
  return all;
}

CsvReader::CsvReader(std::shared_ptr<const CsvFile> file,
                     std::vector<std::size_t> columns)
    : file_(std::move(file)),
      columns_(std::move(columns)),
      grid_(file_->rules, file_->names.size()),
      values_(file_->reader, file_->facts().columns, file_->rules.quote,
              columns_) {}

// The number of a line is only known for the chunk's beginning. For problems,
// which come by row, lines are counted from the problem before: O(bytes) in
// all, and nothing for a chunk without problems.
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
    return "a quotation mark is never closed (" + place + ": " +
           shown_text(grid_.text(row)) + "); " + kCloseMark;
  if (problem.what == CellProblem::What::cells)
    return "the row has " + std::to_string(row.cells) +
           (row.cells == 1 ? " cell" : " cells") + ", expected " +
           std::to_string(file_->names.size()) + " (" + place + ": " +
           shown_text(grid_.text(row)) + "); " + next_to_cells(row);
  const FileColumn& column = file_->facts().columns[columns_[problem.column]];
  const Cell cell = cell_of(grid_.cell(row, columns_[problem.column]),
                            file_->rules.quote, plain_);
  const std::string found = "holds " + shown_text(cell.text);
  if (problem.what == CellProblem::What::line_end)
    return found + " (" + place + "); " + kOneLineEnd;
  if (problem.what == CellProblem::What::encoding)
    return found + " (" + place + "); name its encoding as source.encoding";
  return found + " where " + expected_of(column) + " is expected (" + place +
         "); to choose another type, set source.columns." + column.name;
}

/// What to do about a row with another number of cells than the header.
std::string CsvReader::next_to_cells(const CellGrid::Row& row) const {
  const std::string_view text = grid_.text(row);
  if (text.find('\r') != text.npos) return kOneLineEnd;
  if (row.cells == file_->names.size() + 1)
    return text.ends_with(file_->rules.delimiter)
               ? "the row ends with a delimiter, but the header does not: "
                 "remove it, or add one to the header"
               : "put cells that contain the delimiter in quotation marks, and "
                 "name all columns in the header (in R: row.names=FALSE)";
  return "put cells that contain the delimiter in quotation marks";
}

/// Cells such as 1,5 in each row are numbers to everybody but a parser that
/// expects a decimal point: as texts they would become a category in silence.
[[noreturn]] void refuse_commas(const std::string& path,
                                const std::string& name, const SourceSpec& spec,
                                const std::string& marks) {
  const bool grouped = marks.find("thousands") != marks.npos;
  throw Error(ErrorKind::request,
              {.code = "source.decimal",
               .what = "cannot determine what column '" + name + "' holds",
               .where = path,
               .why = "the cells may be text, or numbers with a decimal comma",
               .next = "to read numbers, write '" + csv_uri(spec, path, marks) +
                       "' (in a job, \"decimal\": \",\"" +
                       (grouped ? ", \"thousands\": \".\"" : "") +
                       "); to read text, set \"columns\": {" +
                       Json(name).dump() + ": \"text\"}"});
}

/// Of a first line that may be a row.
Doubt doubt_of_header(const CsvFile& file, const SourceSpec& spec) {
  std::string shown;
  for (const std::string& name : file.names)
    shown += (shown.empty() ? "'" : ", '") + name + "'";
  return {.column = {},
          .why =
              "the first line looks like a row, but is used for the names of "
              "the columns: " +
              beginning(shown, 100),
          .next = "if the line is a row, write '" +
                  csv_uri(spec, file.text.file().path, "header=false") + "'"};
}

/// The files of a source that are open, and what their columns hold.
class OpenedCsv {
 public:
  OpenedCsv(const std::vector<files::DataFile>& data, const SourceSpec& spec,
            StopFlag stop)
      : spec_(spec), chosen_(file_settings_of(spec)) {
    const FileSettings& settings = file_settings_of(spec);
    for (std::size_t at = 0; at < data.size(); ++at) {
      auto csv = std::make_shared<CsvFile>(data[at], settings, stop);
      const LookedAt found = csv->look(at, data.size(), stop);
      whole_ = whole_ && found.whole;
      for (std::size_t c = 0; c < csv->names.size(); ++c)
        cells_[csv->names[c]].add(found.columns[c]);
      counts_up_.push_back(found.counts_up);
      files_.push_back(std::move(csv));
    }
    ask();
    for (std::size_t at = 0; at < files_.size(); ++at)
      describe(*files_[at], counts_up_[at]);
  }

  std::vector<std::shared_ptr<const files::RowFile>> files() const {
    return {files_.begin(), files_.end()};
  }

 private:
  /// What the columns, over all files, cannot tell by themselves.
  void ask() {
    CsvFile& first = *files_.front();
    const std::string& path = first.text.file().path;
    if (first.header.like_row) first.doubt(doubt_of_header(first, spec_));
    for (const auto& csv : files_)
      for (const std::string& name : csv->names) {
        if (!chosen_.of(name).empty() || !asked_.insert(name).second) continue;
        const SeenCells& seen = cells_.at(name);
        const NumberQuestion question(seen, spec_);
        if (question.decimal_commas())
          refuse_commas(path, name, spec_, question.marks());
        if (type_of(seen) == Looks::text && question.asked())
          first.doubt(question.doubt(name, path, [&](CellPlace place) {
            return files_[place.file]->place_of(place.row);
          }));
      }
  }

  /// What was not looked at may hold anything.
  Looks type_of(const SeenCells& seen) const {
    const Looks looks = seen.looks();
    return looks > Looks::time || (looks == Looks::nothing && !whole_)
               ? Looks::text
               : looks;
  }

  void describe(CsvFile& csv, bool counts_up) const {
    std::vector<FileColumn> columns;
    bool guessed = false;
    for (const std::string& name : csv.names) {
      const std::string_view type = chosen_.of(name);
      guessed |= !whole_ && type.empty();
      columns.push_back(type.empty()
                            ? column_that_looks(name, type_of(cells_.at(name)))
                            : column_chosen(name, type));
    }
    if (counts_up)
      columns.front().index = "the number of the row, without a name";
    csv.set_columns(std::move(columns), guessed);
  }

  const SourceSpec& spec_;
  const ChosenTypes chosen_;
  std::vector<std::shared_ptr<CsvFile>> files_;
  std::vector<bool> counts_up_;             // by file
  std::map<std::string, SeenCells> cells_;  // over all files
  std::set<std::string> asked_;
  bool whole_ = true;  // was looked at
};

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_csv(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  return OpenedCsv(data, spec, stop).files();
}

}  // namespace penstock::text
