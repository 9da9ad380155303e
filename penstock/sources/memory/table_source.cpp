#include "penstock/sources/memory/table_source.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/files/checked_column.h"
#include "penstock/sources/files/file_source.h"

namespace penstock {
namespace {

using files::ChunkReader;
using files::FileColumn;
using files::PieceSink;

constexpr std::int64_t kPieceRows = 65536;

/// A column of a table, and whether its codes are read instead of its texts.
struct TableColumn {
  std::size_t at;
  bool coded;
};

class TableReader final : public ChunkReader {
 public:
  TableReader(std::shared_ptr<const ArrowTable> table,
              std::vector<TableColumn> columns)
      : table_(std::move(table)), columns_(std::move(columns)) {}

  void read(std::int64_t chunk, const PieceSink& sink) override {
    const auto batch = static_cast<std::size_t>(chunk);
    const std::int64_t rows =
        table_->ends()[batch] - (batch == 0 ? 0 : table_->ends()[batch - 1]);
    for (std::int64_t at = 0; at < rows; at += kPieceRows) {
      Block piece;
      piece.rows = std::min(kPieceRows, rows - at);
      piece.owner = table_;
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        const auto [column, coded] = columns_[c];
        piece.columns.push_back(
            coded ? table_->codes(batch, column, at, piece.rows)
                  : table_->column(batch, column, at, piece.rows));
        if (Column& of = piece.columns.back(); of.type == ColumnType::text)
          files::drop_bad_text(of, [&](std::int64_t row, std::string why) {
            piece.problems.push_back({row, c, std::move(why)});
          });
        for (std::int64_t row :
             table_->rows_with_gaps(batch, column, at, piece.rows))
          piece.problems.push_back({row, c, files::kListGap});
      }
      if (!sink(std::move(piece))) return;
    }
  }

 private:
  const std::shared_ptr<const ArrowTable> table_;
  const std::vector<TableColumn> columns_;
};

/// The columns of a table that can be read; of those that are `coded`, by name,
/// where they have codes, these.
class TableFile final : public files::RowFile {
 public:
  TableFile(std::shared_ptr<const ArrowTable> table,
            const std::set<std::string>& coded)
      : table_(std::move(table)) {
    for (std::size_t at = 0; at < table_->columns().size(); ++at) {
      const ArrowColumn& column = table_->columns()[at];
      if (!column.unsupported.empty()) continue;
      const std::optional<ColumnType> codes = coded.contains(column.info.name)
                                                  ? table_->code_type(at)
                                                  : std::nullopt;
      places_.push_back({at, codes.has_value()});
      columns_.push_back({.name = column.info.name,
                          .declared = column.info.declared,
                          .type = codes.value_or(column.type),
                          .timestamp = column.info.timestamp,
                          .values = column.info.values});
    }
  }

  const std::vector<FileColumn>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& chunk_ends() const override {
    return table_->ends();
  }
  std::unique_ptr<ChunkReader> open(
      const std::vector<std::size_t>& columns) const override {
    std::vector<TableColumn> of_table;
    for (std::size_t column : columns) of_table.push_back(places_[column]);
    return std::make_unique<TableReader>(table_, std::move(of_table));
  }
  /// Whether the column is read where it lies; true where there is none.
  bool borrows(const std::string& column) const {
    const auto found = std::ranges::find(columns_, column, &FileColumn::name);
    if (found == columns_.end()) return true;
    const TableColumn& of =
        places_[static_cast<std::size_t>(found - columns_.begin())];
    return of.coded || table_->borrows(of.at);
  }

 private:
  const std::shared_ptr<const ArrowTable> table_;
  std::vector<FileColumn> columns_;
  std::vector<TableColumn> places_;
};

/// By name, since requests are checked by what files have.
void check_supported(const ArrowTable& table,
                     const std::vector<ColumnRequest>& requests) {
  for (const ColumnRequest& request : requests)
    for (const ArrowColumn& column : table.columns())
      if (column.info.name == request.column && !column.unsupported.empty())
        throw Error(
            ErrorKind::request,
            {.code = "source.column_type",
             .what = "cannot read column '" + request.column + "'",
             .where = request.setting,
             .why = "it holds " + column.unsupported + ", which is not read",
             .next = "name another column, or convert this one"});
}

/// The columns whose codes do for all who read them; a condition compares
/// texts.
std::set<std::string> coded_columns(const std::vector<ColumnRequest>& requests,
                                    const std::string& where) {
  std::set<std::string> coded;
  if (!where.empty()) return coded;
  for (const ColumnRequest& request : requests)
    if (request.coded) coded.insert(request.column);
  for (const ColumnRequest& request : requests)
    if (!request.coded) coded.erase(request.column);
  return coded;
}

}  // namespace

std::unique_ptr<Source> open_arrow_table(
    std::shared_ptr<const ArrowTable> table, const TableName& name,
    const std::vector<ColumnRequest>& requests, StopFlag stop) {
  check_supported(*table, requests);
  const auto file = std::make_shared<const TableFile>(
      table, coded_columns(requests, name.where));
  files::FileKind kind;
  kind.about.name = "table";
  kind.in_memory =
      name.where.empty() &&
      std::ranges::all_of(requests, [&](const ColumnRequest& request) {
        return file->borrows(request.column);
      });
  kind.find = [&](const SourceSpec&, const SourceKind&) {
    return std::vector<files::DataFile>{
        {.path = name.shown, .relative = name.digest}};
  };
  kind.open =
      [&](const SourceSpec&, const std::vector<files::DataFile>&,
          StopFlag) -> std::vector<std::shared_ptr<const files::RowFile>> {
    return {file};
  };
  SourceSpec spec{.kind = "table", .path = name.shown, .where = name.where};
  spec.own = FileSettings{.paths = {name.shown}};
  return files::open_file_source(spec, requests, {.stop = stop}, kind);
}

}  // namespace penstock
