#include "penstock/sources/memory/table_source.h"

#include <algorithm>
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

class TableReader final : public ChunkReader {
 public:
  TableReader(std::shared_ptr<const ArrowTable> table,
              std::vector<std::size_t> columns)
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
        piece.columns.push_back(
            table_->column(batch, columns_[c], at, piece.rows));
        for (std::int64_t row :
             table_->rows_with_gaps(batch, columns_[c], at, piece.rows))
          piece.problems.push_back({row, c, files::kListGap});
      }
      if (!sink(std::move(piece))) return;
    }
  }

 private:
  const std::shared_ptr<const ArrowTable> table_;
  const std::vector<std::size_t> columns_;  // of the table
};

/// The columns of a table that can be read.
class TableFile final : public files::RowFile {
 public:
  explicit TableFile(std::shared_ptr<const ArrowTable> table)
      : table_(std::move(table)) {
    for (std::size_t at = 0; at < table_->columns().size(); ++at) {
      const ArrowColumn& column = table_->columns()[at];
      if (!column.unsupported.empty()) continue;
      places_.push_back(at);
      columns_.push_back({.name = column.info.name,
                          .declared = column.info.declared,
                          .type = column.type,
                          .timestamp = column.info.timestamp});
    }
  }

  const std::vector<FileColumn>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& chunk_ends() const override {
    return table_->ends();
  }
  std::unique_ptr<ChunkReader> open(
      const std::vector<std::size_t>& columns) const override {
    std::vector<std::size_t> of_table;
    for (std::size_t column : columns) of_table.push_back(places_[column]);
    return std::make_unique<TableReader>(table_, std::move(of_table));
  }

 private:
  const std::shared_ptr<const ArrowTable> table_;
  std::vector<FileColumn> columns_;
  std::vector<std::size_t> places_;
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

}  // namespace

std::unique_ptr<Source> open_arrow_table(
    std::shared_ptr<const ArrowTable> table, const TableName& name,
    const std::vector<ColumnRequest>& requests, StopFlag stop) {
  check_supported(*table, requests);
  files::FileKind kind;
  kind.about.name = "table";
  kind.find = [&](const SourceSpec&, const SourceKind&) {
    return std::vector<files::DataFile>{
        {.path = name.shown, .relative = name.digest}};
  };
  kind.open =
      [&](const SourceSpec&, const std::vector<files::DataFile>&,
          StopFlag) -> std::vector<std::shared_ptr<const files::RowFile>> {
    return {std::make_shared<TableFile>(table)};
  };
  SourceSpec spec{.kind = "table", .path = name.shown, .where = name.where};
  spec.own = FileSettings{.paths = {name.shown}};
  return files::open_file_source(spec, requests, {.stop = stop}, kind);
}

}  // namespace penstock
