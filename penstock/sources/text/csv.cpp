#include <algorithm>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/text/text_file.h"

// A file is walked once for the ends of its rows, then some of its chunks for
// the types of its columns, and from then on chunk by chunk. A cell that is no
// value of its column's type is a problem of its row, with file and line, and
// so is a row with another number of cells than the header.

namespace penstock::text {
namespace {

using files::FileColumn;

struct CsvFile;

class CsvReader final : public files::ChunkReader {
 public:
  CsvReader(std::shared_ptr<const CsvFile> file,
            std::vector<std::size_t> columns);
  void read(std::int64_t chunk, const files::PieceSink& sink) override;

 private:
  void append_row(std::string_view row, std::int64_t line, Block& block);
  void append(const Cell& cell, std::size_t at, std::int64_t line,
              Block& block);
  void refuse_row(const std::string& why, Block& block);

  const std::shared_ptr<const CsvFile> file_;
  const std::vector<std::size_t> columns_;
  ChunkBuffer buffer_;
  Cells cells_;
};

struct CsvFile final : files::RowFile, std::enable_shared_from_this<CsvFile> {
  CsvFile(const files::DataFile& file, const FileSettings& settings,
          StopFlag stop)
      : text(file, settings.encoding, stop),
        reader(settings.na, settings.decimal[0]) {
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

  void look(std::size_t chunk, std::vector<Looks>& looks) const;

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
  std::string start(static_cast<std::size_t>(std::min(text.size(), kLongest)),
                    '\0');
  text.read(0, start.data(), start.size());
  const char* begin = start.data();
  const char* end = begin + start.size();
  if (start.starts_with("\xef\xbb\xbf")) begin += 3;  // says that it is UTF-8
  rules.quote = settings.quote == "none" || settings.quote.empty()
                    ? '\0'
                    : settings.quote[0];
  rules.delimiter = settings.delimiter == "tab"  ? '\t'
                    : settings.delimiter.empty() ? '\0'
                                                 : settings.delimiter[0];
  for (;;) {
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
    if (next == nullptr) next = end;
    std::string_view row = content_of(begin, next);
    if (!row.empty()) {
      if (rules.delimiter == '\0') rules.delimiter = delimiter_in(row);
      Cells cutter(rules);
      const std::vector<Cell>& cells = cutter.split(row);
      for (std::size_t at = 0; at < cells.size(); ++at)
        names.push_back(settings.header && !cells[at].text.empty()
                            ? std::string(cells[at].text)
                            : "c" + std::to_string(at + 1));
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
  check_names();
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

void CsvFile::look(std::size_t chunk, std::vector<Looks>& looks) const {
  ChunkBuffer buffer;
  Cells cells(rules);
  const TextChunk& of = rows_found.chunks[chunk];
  each_row(buffer.read(text, of), rules, of.line,
           [&](std::string_view row, std::int64_t) {
             const std::vector<Cell>& found = cells.split(row);
             for (std::size_t c = 0; c < std::min(found.size(), looks.size());
                  ++c)
               if (looks[c] != Looks::text)
                 looks[c] = wider(looks[c], reader.looks(found[c]));
           });
}

CsvReader::CsvReader(std::shared_ptr<const CsvFile> file,
                     std::vector<std::size_t> columns)
    : file_(std::move(file)),
      columns_(std::move(columns)),
      cells_(file_->rules) {}

void CsvReader::read(std::int64_t chunk, const files::PieceSink& sink) {
  const TextChunk& of =
      file_->rows_found.chunks[static_cast<std::size_t>(chunk)];
  Block block;
  for (std::size_t column : columns_)
    block.columns.emplace_back().type = file_->columns_[column].type;
  each_row(buffer_.read(file_->text, of), file_->rules, of.line,
           [&](std::string_view row, std::int64_t line) {
             append_row(row, line, block);
           });
  sink(std::move(block));
}

void CsvReader::refuse_row(const std::string& why, Block& block) {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    block.problems.push_back({block.rows, c, why});
    block.columns[c].append_null();
  }
}

void CsvReader::append_row(std::string_view row, std::int64_t line,
                           Block& block) {
  const std::vector<Cell>& cells = cells_.split(row);
  if (cells.size() != file_->names.size()) {
    refuse_row("its row has " + std::to_string(cells.size()) +
                   (cells.size() == 1 ? " cell" : " cells") + ", expected " +
                   std::to_string(file_->names.size()) + " (" +
                   file_->text.place(line) + ": " + shown_text(row) +
                   "); a cell that holds the delimiter must stand in quotation "
                   "marks",
               block);
  } else {
    for (std::size_t c = 0; c < columns_.size(); ++c)
      append(cells[columns_[c]], c, line, block);
  }
  ++block.rows;
}

void CsvReader::append(const Cell& cell, std::size_t at, std::int64_t line,
                       Block& block) {
  const FileColumn& column = file_->columns_[columns_[at]];
  Column& to = block.columns[at];
  const bool is_text = to.type.is_text();
  // A number is tried first: few cells are missing. "nan" is a number to the
  // parser, and missing to people.
  const bool may_be_na = cell.text.empty() || is_text || column.timestamp ||
                         static_cast<unsigned char>(cell.text.back()) > '9';
  if (may_be_na &&
      (file_->reader.is_na(cell) || (cell.text.empty() && !is_text)))
    return to.append_null();
  if (is_text && !is_utf8(cell.text)) {
    block.problems.push_back({block.rows, at,
                              "holds " + shown_text(cell.text) + " (" +
                                  file_->text.place(line) +
                                  "); name its encoding as source.encoding"});
    return to.append_null();
  }
  if (to.type.kind != ColumnKind::null &&
      append_cell(file_->reader, cell.text, column, to))
    return;
  if (!file_->reader.is_na(cell))
    block.problems.push_back(
        {block.rows, at,
         "holds " + shown_text(cell.text) + " where " + expected_of(column) +
             " is expected (" + file_->text.place(line) +
             "); another type can be chosen: source.columns." + column.name});
  to.append_null();
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
    whole &=
        look_at_file(csv->rows_found, data.size(), stop,
                     [&](std::size_t chunk) { csv->look(chunk, of_file); });
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
