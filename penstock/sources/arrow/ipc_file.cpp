#include <arrow/api.h>

#include <algorithm>
#include <map>

#include "penstock/base/error.h"
#include "penstock/sources/arrow/arrow_column.h"
#include "penstock/sources/arrow/arrow_error.h"
#include "penstock/sources/arrow/arrow_file.h"
#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/arrow/declared_classes.h"
#include "penstock/sources/arrow/ipc_batches.h"

// A record batch is a chunk.

namespace penstock::arrow_files {
namespace {

class IpcFile final : public files::RowFile,
                      public std::enable_shared_from_this<IpcFile> {
 public:
  IpcFile(const files::DataFile& file, StopFlag stop);

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

 private:
  friend class IpcReader;
  /// The field of the schema that a column is, or is in.
  int field_of(const ArrowColumn& column) const {
    return batches_->schema()->GetFieldIndex(column.names[0]);
  }
  void count_rows(StopFlag stop);

  const files::DataFile file_;
  std::unique_ptr<const IpcBatches> batches_;
  std::vector<ArrowColumn> columns_;
};

class IpcReader final : public files::ChunkReader {
 public:
  IpcReader(std::shared_ptr<const IpcFile> file,
            std::vector<std::size_t> columns)
      : file_(std::move(file)),
        columns_(std::move(columns)),
        batches_(file_->batches_->decode(fields())) {}

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    Block block;
    block.rows = file_->chunk_end(chunk) - file_->chunk_begin(chunk);
    if (columns_.empty()) {
      sink(std::move(block));
      return;
    }
    const std::string where = batch_name(chunk);
    auto batch = batches_->read(chunk, where);
    if (batch->num_rows() != block.rows)
      refuse_damaged(file_->file_, where,
                     "found " + std::to_string(batch->num_rows()) +
                         " rows, expected " + std::to_string(block.rows));
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const ArrowColumn& column = file_->columns_[columns_[c]];
      auto array = array_of(*batch, column.names, file_->file_, where);
      block.columns.push_back(column_from(array, column.column, c,
                                          block.problems, file_->file_, where));
    }
    sink(std::move(block));
  }

 private:
  std::vector<int> fields() const {
    std::vector<int> fields;
    for (std::size_t column : columns_)
      fields.push_back(file_->field_of(file_->columns_[column]));
    std::ranges::sort(fields);
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
    return fields;
  }

  const std::shared_ptr<const IpcFile> file_;
  const std::vector<std::size_t> columns_;
  const std::unique_ptr<IpcDecoder> batches_;
};

IpcFile::IpcFile(const files::DataFile& file, StopFlag stop)
    : file_(file), batches_(open_batches(file_, stop)) {
  if (batches_->schema()->num_fields() == 0)
    refuse_format(file_, "the file has no columns", "leave the file out");
  columns_ = columns_of(*batches_->schema(), file_, facts_.left_out);
  count_rows(stop);
  for (const ArrowColumn& column : columns_)
    facts_.columns.push_back(column.column);
}

// A batch says how many rows it has when a field of it is decoded: one that can
// be read, of which nothing is copied unless it is compressed. With it those
// fields whose dictionaries define the order of classes.
void IpcFile::count_rows(StopFlag stop) {
  std::vector<int> fields = {columns_.empty() ? 0 : field_of(columns_[0])};
  std::map<std::size_t, SharedDictionary> ordered;  // by column
  for (std::size_t at = 0; at < columns_.size(); ++at)
    if (columns_[at].ordered) {
      fields.push_back(field_of(columns_[at]));
      ordered.emplace(at, SharedDictionary());
    }
  const auto batches = batches_->decode(std::move(fields));
  std::int64_t rows = 0;
  for (std::int64_t chunk = 0; chunk < batches_->count(); ++chunk) {
    end_if_stopped(stop);
    const std::string where = batch_name(chunk);
    const auto batch = batches->read(chunk, where);
    for (auto& [at, dictionary] : ordered)
      dictionary.add(*array_of(*batch, columns_[at].names, file_, where));
    rows += batch->num_rows();
    facts_.chunk_ends.push_back(rows);
  }
  for (const auto& [at, dictionary] : ordered)
    columns_[at].column.values = dictionary.classes();
}

std::unique_ptr<files::ChunkReader> IpcFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<IpcReader>(shared_from_this(), columns);
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_ipc(
    const SourceSpec&, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  return files::open_each(data, stop, [&](const files::DataFile& file) {
    return std::make_shared<IpcFile>(file, stop);
  });
}

}  // namespace penstock::arrow_files
