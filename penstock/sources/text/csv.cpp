#include <algorithm>
#include <atomic>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/side_by_side.h"
#include "penstock/sources/text/cell_values.h"
#include "penstock/sources/text/csv_header.h"
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
    "a carriage return does not end a row here, since the first line ends with "
    "a line feed: write one kind of line end, or put the cell in quotation "
    "marks";

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

struct CsvFile final : files::RowFile, std::enable_shared_from_this<CsvFile> {
  CsvFile(const files::DataFile& file, const FileSettings& settings,
          StopFlag stop)
      : text(file, settings.encoding, stop,
             QuotationMarks(quote_of(settings), delimiter_of(settings))),
        reader(settings.na, settings.decimal[0], quote_of(settings)),
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

  /// False: its last row cannot be looked at.
  bool look(std::size_t chunk, std::vector<Looks>& looks) const;
  /// At some chunks, or all that is in them: true.
  bool look(std::size_t files, StopFlag stop, std::vector<Looks>& looks) const;

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
    facts_.left_out.push_back(
        {.name = "types of columns",
         .why = "only parts of the file were looked at for them, and other "
                "cells may not fit",
         .next = "give the types as source.columns"});
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
      values_(file_->reader, file_->facts().columns, file_->rules.quote,
              columns_) {}

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
         "); another type can be chosen: source.columns." + column.name;
}

/// What to do about a row with another number of cells than the header.
std::string CsvReader::next_to_cells(const CellGrid::Row& row) const {
  const std::string_view text = grid_.text(row);
  if (text.find('\r') != text.npos) return kOneLineEnd;
  if (row.cells == file_->names.size() + 1)
    return text.ends_with(file_->rules.delimiter)
               ? "it ends with a delimiter, and the header does not: remove "
                 "it, or add one to the header"
               : "a cell that holds the delimiter must stand in quotation "
                 "marks, and a header must name all columns (in R: "
                 "row.names=FALSE)";
  return "a cell that holds the delimiter must stand in quotation marks";
}

/// Cells such as 1,5 in each row are numbers to everybody but a parser that
/// expects a decimal point: as texts they would become a category in silence.
[[noreturn]] void refuse_commas(const std::string& path,
                                const std::string& name) {
  throw Error(
      ErrorKind::request,
      {.code = "source.decimal",
       .what = "cannot tell what column '" + name + "' holds",
       .where = path,
       .why = "its cells are numbers with a decimal comma",
       .next = "write 'csv:" + path +
               "?decimal=,' (in a job \"decimal\": \",\"), or for texts "
               "\"columns\": {" +
               Json(name).dump() + ": \"text\"}"});
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
  const ChosenTypes chosen(settings);
  for (const auto& csv : opened) {
    std::vector<FileColumn> columns;
    bool guessed = false;
    for (const std::string& name : csv->names) {
      const std::string_view type = chosen.of(name);
      Looks as = looks[name];
      // What was not looked at may hold anything.
      if (as == Looks::nothing && !whole) as = Looks::text;
      // A file whose delimiter is a comma cannot be read with decimal commas.
      if (as == Looks::comma && type.empty() && csv->rules.delimiter != ',')
        refuse_commas(data.front().path, name);
      guessed |= !whole && type.empty();
      columns.push_back(type.empty() ? column_that_looks(name, as)
                                     : column_chosen(name, type));
    }
    csv->set_columns(std::move(columns), guessed);
    all.push_back(csv);
  }
  return all;
}

}  // namespace penstock::text
