#include "penstock/sources/memory/table_source.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/name_index.h"
#include "penstock/sources/files/checked_column.h"
#include "penstock/sources/files/file_source.h"
#include "penstock/sources/picked.h"

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

/// Which pieces of which columns are known to be UTF-8: rows of a table are
/// read again and again, and its texts stay what they are. Thread-safe.
class KnownTexts {
 public:
  explicit KnownTexts(const ArrowTable& table)
      : columns_(table.columns().size()) {
    std::size_t pieces = 0;
    std::int64_t begin = 0;
    for (const std::int64_t end : table.ends()) {
      first_.push_back(pieces);
      pieces += static_cast<std::size_t>((end - begin - 1) / kPieceRows + 1);
      begin = end;
    }
    known_ = std::vector<std::atomic<bool>>(pieces * columns_);
  }
  /// Of the piece that begins at row `at` of a record batch. Nothing else
  /// hangs on it, so that any order of memory will do.
  std::atomic<bool>& of(std::size_t batch, std::int64_t at,
                        std::size_t column) {
    const auto piece = static_cast<std::size_t>(at / kPieceRows);
    return known_[(first_[batch] + piece) * columns_ + column];
  }

 private:
  const std::size_t columns_;
  std::vector<std::size_t> first_;  // piece of each record batch
  std::vector<std::atomic<bool>> known_;
};

class TableReader final : public ChunkReader {
 public:
  TableReader(std::shared_ptr<const ArrowTable> table,
              std::shared_ptr<KnownTexts> known,
              std::vector<TableColumn> columns)
      : table_(std::move(table)),
        known_(std::move(known)),
        columns_(std::move(columns)) {}

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
        if (piece.columns.back().type == ColumnType::text)
          check_text(known_->of(batch, at, column), c, piece);
        for (std::int64_t row :
             table_->rows_with_gaps(batch, column, at, piece.rows))
          piece.problems.push_back({row, c, files::kListGap});
      }
      if (!sink(std::move(piece))) return;
    }
  }

 private:
  static void check_text(std::atomic<bool>& known, std::size_t column,
                         Block& piece) {
    if (known.load(std::memory_order_relaxed)) return;
    const std::size_t before = piece.problems.size();
    files::drop_bad_text(
        piece.columns[column], [&](std::int64_t row, std::string why) {
          piece.problems.push_back({row, column, std::move(why)});
        });
    if (piece.problems.size() == before)
      known.store(true, std::memory_order_relaxed);
  }

  const std::shared_ptr<const ArrowTable> table_;
  const std::shared_ptr<KnownTexts> known_;
  const std::vector<TableColumn> columns_;
};

/// The columns of a table that can be read; of those that are `coded`, by name,
/// where they have codes, these.
class TableFile final : public files::RowFile {
 public:
  TableFile(std::shared_ptr<const ArrowTable> table,
            const std::set<std::string>& coded)
      : table_(std::move(table)),
        known_(std::make_shared<KnownTexts>(*table_)) {
    for (std::size_t at = 0; at < table_->columns().size(); ++at) {
      const ArrowColumn& column = table_->columns()[at];
      if (!column.readable()) {
        facts_.left_out.push_back(left_out_column(column, column.unsupported));
        continue;
      }
      const std::optional<ColumnType> codes = coded.contains(column.info.name)
                                                  ? table_->code_type(at)
                                                  : std::nullopt;
      places_.push_back({at, codes.has_value()});
      facts_.columns.push_back({.name = column.info.name,
                                .declared = column.info.declared,
                                .type = codes.value_or(column.type),
                                .timestamp = column.info.timestamp,
                                .values = column.info.values});
    }
    facts_.chunk_ends = table_->ends();
    names_ = NameIndex(facts_.columns, &FileColumn::name);
  }

  std::unique_ptr<ChunkReader> open(
      const std::vector<std::size_t>& columns) const override {
    std::vector<TableColumn> of_table;
    for (std::size_t column : columns) of_table.push_back(places_[column]);
    return std::make_unique<TableReader>(table_, known_, std::move(of_table));
  }
  /// Whether the column is read where it lies; true if none exists.
  bool borrows(const std::string& column) const {
    const std::optional<std::size_t> found = names_.find(column);
    if (!found) return true;
    const TableColumn& of = places_[*found];
    return of.coded || table_->borrows(of.at);
  }

 private:
  const std::shared_ptr<const ArrowTable> table_;
  const std::shared_ptr<KnownTexts> known_;
  std::vector<TableColumn> places_;
  NameIndex names_;  // of facts_.columns
};

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
  auto whole = files::open_file_source(spec, requests, {.stop = stop}, kind);
  if (name.picked == nullptr) return whole;
  PENSTOCK_ASSERT(name.where.empty(), "rows are picked from all of a table");
  return picked(std::move(whole), name.picked);
}

}  // namespace penstock
