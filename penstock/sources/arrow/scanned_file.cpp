#include "penstock/sources/arrow/scanned_file.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/name_index.h"
#include "penstock/sources/arrow/arrow_file.h"
#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/files/checked_column.h"
#include "penstock/sources/files/file_source.h"
#include "penstock/sources/files/object_store.h"

// The library behind a scanner decodes; what its values become, and what is
// said of those that are damaged, is as in the plugin.

namespace penstock {

// In the descriptor.
SourceKind parquet_source();
SourceKind arrow_source();
SourceKind hf_source();

namespace arrow_files {
namespace {

/// Does `work`, which a scanner may refuse.
template <class Work>
auto told(const files::DataFile& file, const std::string& where, Work work) {
  try {
    return work();
  } catch (const ScanFailure& failure) {
    if (failure.of_store) files::refuse_stored(file.path, failure.says);
    if (!failure.next.empty()) {
      files::check_unchanged(file);
      refuse_format(file, failure.says, failure.next);
    }
    fail(ArrowSays{.text = failure.says,
                   .no_memory = failure.no_memory,
                   .unsupported = failure.unsupported},
         file, failure.where.empty() ? where : failure.where);
  }
}

/// A column as the plugin has it.
files::FileColumn described(const ArrowColumn& column,
                            const std::string& declared,
                            const std::string& meaning) {
  files::FileColumn seen{.name = column.info.name,
                         .declared = declared,
                         .type = column.type,
                         .timestamp = column.info.timestamp,
                         .index = column.info.index};
  if (meaning == "json" && seen.type.is_text()) seen.type = ColumnType::json;
  if (meaning == "uuid" && seen.type == ColumnType::binary)
    seen.type = ColumnType::uuid;
  return seen;
}

/// Values of 16 bytes as uuids. False if one is not a uuid.
bool make_uuids(Column& column) {
  Column made{.type = ColumnType::uuid};
  for (std::int64_t row = 0; row < column.length; ++row) {
    if (!column.valid(row)) {
      made.append_null();
      continue;
    }
    const std::string_view bytes = column.text(row);
    if (bytes.size() != 16) return false;
    made.append_uuid(reinterpret_cast<const std::byte*>(bytes.data()));
  }
  column = std::move(made);
  return true;
}

class FileOfScanner final : public files::RowFile,
                            public std::enable_shared_from_this<FileOfScanner> {
 public:
  FileOfScanner(const files::DataFile& file, bool parquet,
                ArrowScanner& scanner)
      : file_(file), parquet_(parquet) {
    of_ = told(file_, parquet ? "its footer" : "its schema", [&] {
      return scanner.open(parquet ? "parquet" : "arrow",
                          file.path + file.store_options);
    });
    const std::vector<ArrowColumn>& columns = of_->empty->columns();
    PENSTOCK_ASSERT(columns.size() == of_->declared.size() &&
                        columns.size() == of_->meaning.size() &&
                        columns.size() == of_->classes.size(),
                    "each column is described");
    for (std::size_t at = 0; at < columns.size(); ++at) {
      if (!columns[at].readable()) {
        facts_.left_out.push_back(
            left_out_column(columns[at], of_->declared[at]));
        continue;
      }
      places_.push_back(at);
      facts_.columns.push_back(
          described(columns[at], of_->declared[at], of_->meaning[at]));
      facts_.columns.back().values = of_->classes[at];
    }
    facts_.chunk_ends = of_->chunk_ends;
  }

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

 private:
  friend class ScanReader;
  std::string place(std::int64_t chunk) const {
    return parquet_ ? group_name(chunk, chunk_begin(chunk), chunk_end(chunk))
                    : batch_name(chunk);
  }

  const files::DataFile file_;
  const bool parquet_;
  std::shared_ptr<const ScannedFile> of_;
  std::vector<std::size_t> places_;  // by column: that of the scanner's
};

class ScanReader final : public files::ChunkReader {
 public:
  ScanReader(std::shared_ptr<const FileOfScanner> file,
             std::vector<std::size_t> columns)
      : file_(std::move(file)), columns_(std::move(columns)) {}

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    if (columns_.empty()) {
      Block block;
      block.rows = file_->chunk_end(chunk) - file_->chunk_begin(chunk);
      sink(std::move(block));
      return;
    }
    where_ = file_->place(chunk);
    told(file_->file_, where_, [&] {
      if (scan_ == nullptr) scan_ = file_->of_->scan(places());
      scan_->begin(chunk);
    });
    for (;;) {
      auto rows = told(file_->file_, where_, [&] { return scan_->next(); });
      if (rows == nullptr) return;
      for (std::size_t batch = 0; batch < rows->ends().size(); ++batch)
        if (!sink(block_of(rows, batch))) return;
    }
  }

 private:
  std::vector<std::size_t> places() const {
    std::vector<std::size_t> places;
    for (std::size_t column : columns_)
      places.push_back(file_->places_[column]);
    return places;
  }

  [[noreturn]] void damaged(const files::FileColumn& of,
                            const std::string& why) const {
    refuse_damaged(file_->file_, where_, "column '" + of.name + "': " + why);
  }

  Block block_of(const std::shared_ptr<const ArrowTable>& rows,
                 std::size_t batch) {
    Block block;
    block.rows =
        rows->ends()[batch] - (batch == 0 ? 0 : rows->ends()[batch - 1]);
    block.owner = rows;
    const NameIndex names(rows->columns(), [](const ArrowColumn& column) {
      return std::string_view(column.info.name);
    });
    for (std::size_t c = 0; c < columns_.size(); ++c)
      block.columns.push_back(
          column_of(*rows, names, batch, c, block.rows, block.problems));
    return block;
  }

  Column column_of(const ArrowTable& rows, const NameIndex& names,
                   std::size_t batch, std::size_t at, std::int64_t count,
                   std::vector<RowProblem>& problems) {
    const files::FileColumn& of = file_->facts().columns[columns_[at]];
    const ArrowColumn& was =
        file_->of_->empty->columns()[file_->places_[columns_[at]]];
    const std::optional<std::size_t> found = names.find(of.name);
    if (!found)
      refuse_damaged(file_->file_, where_,
                     "the file no longer has the column '" + of.name + "'");
    const std::size_t place = found.value();
    const ArrowColumn& is = rows.columns()[place];
    if (is.type != was.type || is.element != was.element || is.item != was.item)
      damaged(of, "found type " + is.info.declared + ", expected " +
                      was.info.declared);
    Column column = values_of(of, rows, batch, place);
    auto problem = [&](std::int64_t row, const std::string& why) {
      problems.push_back(
          {row, at, why + " (" + file_->file_.path + ", " + where_ + ")"});
    };
    check(of, column, problem);
    for (std::int64_t row : rows.rows_with_gaps(batch, place, 0, count))
      problem(row, files::kListGap);
    return column;
  }

  Column values_of(const files::FileColumn& of, const ArrowTable& rows,
                   std::size_t batch, std::size_t place) const {
    try {
      return rows.column(batch, place);
    } catch (const Error& error) {
      damaged(of, error.parts().why);
    }
  }

  template <class Problem>
  void check(const files::FileColumn& of, Column& column, Problem problem) {
    const ColumnKind kind = column.type.kind;
    if (kind == ColumnKind::utf8 || kind == ColumnKind::binary ||
        kind == ColumnKind::list) {
      const std::int64_t end =
          kind == ColumnKind::list
              ? column.children[0].length
              : static_cast<std::int64_t>(column.values.size());
      if (!files::offsets_ascend(column, end))
        damaged(of, "the offsets do not ascend");
    }
    if (column.type == ColumnType::text) files::drop_bad_text(column, problem);
    if (of.type == ColumnType::json) column.type = of.type;
    if (of.type == ColumnType::uuid && !make_uuids(column))
      damaged(of, "the values do not have 16 bytes, as UUIDs must");
  }

  const std::shared_ptr<const FileOfScanner> file_;
  const std::vector<std::size_t> columns_;
  std::unique_ptr<ChunkScan> scan_;
  std::string where_;  // of the chunk that is read
};

std::unique_ptr<files::ChunkReader> FileOfScanner::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<ScanReader>(shared_from_this(), columns);
}

std::shared_ptr<ArrowScanner>& kept_scanner() {
  static std::shared_ptr<ArrowScanner> kept;
  return kept;
}

template <bool parquet>
std::vector<std::shared_ptr<const files::RowFile>> open_scanned(
    const SourceSpec&, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  std::vector<std::shared_ptr<const files::RowFile>> opened;
  for (const files::DataFile& file : data) {
    end_if_stopped(stop);
    opened.push_back(
        std::make_shared<FileOfScanner>(file, parquet, *kept_scanner()));
  }
  return opened;
}

const files::FileKind& scanned_kind(const SourceSpec& spec) {
  static const files::FileKind parquet{parquet_source(), open_scanned<true>,
                                       files::find_files_anywhere};
  static const files::FileKind arrow{arrow_source(), open_scanned<false>,
                                     files::find_files_anywhere};
  static const files::FileKind hf{hf_source(), open_scanned<false>,
                                  find_hf_files};
  if (spec.kind == "hf") return hf;
  return spec.kind == "parquet" ? parquet : arrow;
}

}  // namespace

const SourcePlugin& scanning_plugin(std::shared_ptr<ArrowScanner> scanner) {
  static const bool kept [[maybe_unused]] =
      (kept_scanner() = std::move(scanner), true);
  return files::kFilePlugin<scanned_kind>;
}

}  // namespace arrow_files

}  // namespace penstock
