#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>

#include <algorithm>
#include <map>

#include "penstock/base/error.h"
#include "penstock/sources/arrow/arrow_column.h"
#include "penstock/sources/arrow/arrow_error.h"
#include "penstock/sources/arrow/arrow_file.h"
#include "penstock/sources/arrow/arrow_memory.h"
#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/arrow/declared_classes.h"
#include "penstock/sources/arrow/stored_input.h"

// The file format is the stream format between two marks and before a footer
// that we do not need: both are walked once, message by message, over a mapped
// file, of which this touches the headers alone. A record batch is a chunk. Its
// buffers lie in the mapping, unless they are compressed.

namespace penstock::arrow_files {
namespace {

constexpr std::string_view kMark = "ARROW1";
constexpr std::int64_t kBehindMark = 8;

using Messages = std::vector<std::shared_ptr<arrow::ipc::Message>>;

/// Gives a stream reader the messages that it is to see next.
class Feed final : public arrow::ipc::MessageReader {
 public:
  explicit Feed(const std::vector<std::shared_ptr<arrow::ipc::Message>>* queue)
      : queue_(queue) {}

  arrow::Result<std::unique_ptr<arrow::ipc::Message>> ReadNextMessage()
      override {
    if (at_ == queue_->size()) return nullptr;
    const arrow::ipc::Message& next = *(*queue_)[at_++];
    return arrow::ipc::Message::Open(next.metadata(), next.body());
  }

 private:
  const Messages* const queue_;
  std::size_t at_ = 0;
};

class IpcFile final : public files::RowFile,
                      public std::enable_shared_from_this<IpcFile> {
 public:
  IpcFile(const files::DataFile& file, StopFlag stop);

  const std::vector<files::FileColumn>& columns() const override {
    return seen_;
  }
  std::vector<LeftOutColumn> left_out() const override { return left_out_; }
  const std::vector<std::int64_t>& chunk_ends() const override { return ends_; }
  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

 private:
  friend class IpcReader;
  void walk(StopFlag stop);
  void count_rows(StopFlag stop);

  const files::DataFile file_;
  std::shared_ptr<arrow::Schema> schema_;
  Messages messages_;                 // the first is the schema
  std::vector<std::size_t> batches_;  // by chunk: its message
  std::vector<ArrowColumn> columns_;
  std::vector<LeftOutColumn> left_out_;
  std::vector<files::FileColumn> seen_;
  std::vector<std::int64_t> ends_;
};

/// Decodes some fields of record batches, in any order.
class Batches {
 public:
  Batches(const files::DataFile& file, const Messages& messages,
          std::vector<int> fields)
      : file_(file), messages_(messages) {
    options_.use_threads = false;
    options_.memory_pool = memory();
    options_.included_fields = std::move(fields);
    options_.ensure_alignment =
        arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  }

  /// `message` holds a record batch.
  std::shared_ptr<arrow::RecordBatch> read(std::size_t message,
                                           const std::string& where) {
    if (reader_ == nullptr || message < next_) begin(where);
    for (; next_ < message; ++next_)
      if (messages_[next_]->type() == arrow::ipc::MessageType::DICTIONARY_BATCH)
        queue_.push_back(messages_[next_]);
    queue_.push_back(messages_[next_++]);
    std::shared_ptr<arrow::RecordBatch> batch;
    arrow::Status status = reader_->ReadNext(&batch);
    if (!status.ok()) reader_.reset();
    check(status, file_, where);
    if (batch == nullptr)
      fail(arrow::Status::Invalid("it holds no rows"), file_, where);
    return batch;
  }

 private:
  void begin(const std::string& where) {
    reader_.reset();
    queue_.assign(1, messages_[0]);
    next_ = 1;
    reader_ = checked(arrow::ipc::RecordBatchStreamReader::Open(
                          std::make_unique<Feed>(&queue_), options_),
                      file_, where);
  }

  const files::DataFile& file_;
  const Messages& messages_;
  arrow::ipc::IpcReadOptions options_ = arrow::ipc::IpcReadOptions::Defaults();
  Messages queue_;
  std::size_t next_ = 0;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> reader_;
};

class IpcReader final : public files::ChunkReader {
 public:
  IpcReader(std::shared_ptr<const IpcFile> file,
            std::vector<std::size_t> columns)
      : file_(std::move(file)),
        columns_(std::move(columns)),
        batches_(file_->file_, file_->messages_, fields()) {}

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    auto at = static_cast<std::size_t>(chunk);
    Block block;
    block.rows = file_->ends_[at] - (at == 0 ? 0 : file_->ends_[at - 1]);
    if (columns_.empty()) {
      sink(std::move(block));
      return;
    }
    const std::string where = batch_name(chunk);
    auto batch = batches_.read(file_->batches_[at], where);
    if (batch->num_rows() != block.rows)
      fail(arrow::Status::Invalid("it has ", batch->num_rows(), " rows"),
           file_->file_, where);
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
    for (std::size_t column : columns_) {
      std::vector<int> found =
          file_->schema_->GetAllFieldIndices(file_->columns_[column].names[0]);
      fields.push_back(*std::ranges::min_element(found));
    }
    std::ranges::sort(fields);
    fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
    return fields;
  }

  const std::shared_ptr<const IpcFile> file_;
  const std::vector<std::size_t> columns_;
  Batches batches_;
};

std::string bytes_at(arrow::io::RandomAccessFile& file, std::int64_t at,
                     std::int64_t size, const files::DataFile& data) {
  return checked(file.ReadAt(at, size), data, "")->ToString();
}

IpcFile::IpcFile(const files::DataFile& file, StopFlag stop) : file_(file) {
  walk(stop);
  arrow::ipc::DictionaryMemo memo;
  schema_ = checked(arrow::ipc::ReadSchema(*messages_[0], &memo), file_,
                    "its schema");
  columns_ = columns_of(*schema_, file_, left_out_);
  count_rows(stop);
  for (const ArrowColumn& column : columns_) seen_.push_back(column.column);
}

void IpcFile::walk(StopFlag stop) {
  if (file_.bytes == 0)
    refuse_format(file_, "it has 0 bytes",
                  "remove it: an interrupted copy leaves such a file");
  std::shared_ptr<arrow::io::RandomAccessFile> mapped;
  if (file_.store != nullptr)
    mapped =
        std::make_shared<arrow::io::BufferReader>(copied_buffer(file_, stop));
  else
    mapped = checked(arrow::io::MemoryMappedFile::Open(
                         file_.path, arrow::io::FileMode::READ),
                     file_, "");
  const auto marks = static_cast<std::int64_t>(kMark.size());
  const bool has_footer = bytes_at(*mapped, 0, marks, file_) == kMark;
  if (has_footer &&
      (file_.bytes < kBehindMark + marks ||
       bytes_at(*mapped, file_.bytes - marks, marks, file_) != kMark))
    refuse_format(file_, "its end is missing: it was not written to the end",
                  "write it again, or get an intact copy");
  const std::int64_t first = has_footer ? kBehindMark : 0;
  auto stream = checked(arrow::io::RandomAccessFile::GetStream(
                            mapped, first, file_.bytes - first),
                        file_, "");
  for (;;) {
    end_if_stopped(stop);
    const std::string where =
        messages_.empty() ? "its schema" : batch_name(std::ssize(batches_));
    auto next =
        checked(arrow::ipc::ReadMessage(stream.get(), memory()), file_, where);
    if (next == nullptr) break;
    const auto type = next->type();
    if (messages_.empty() != (type == arrow::ipc::MessageType::SCHEMA))
      fail(arrow::Status::Invalid("a message of type ",
                                  arrow::ipc::FormatMessageType(type),
                                  " is out of place"),
           file_, where);
    if (type == arrow::ipc::MessageType::RECORD_BATCH)
      batches_.push_back(messages_.size());
    messages_.push_back(std::move(next));
  }
  if (messages_.empty())
    refuse_format(file_, "it has no schema",
                  "check that this is an Arrow IPC file");
}

// How many rows a batch has is not told without decoding a field: the first one
// is, of which nothing is copied unless it is compressed; with it those whose
// dictionaries say the order of classes.
void IpcFile::count_rows(StopFlag stop) {
  if (schema_->num_fields() == 0)
    refuse_format(file_, "it has no columns", "leave it out");
  std::vector<int> fields = {0};
  std::map<std::size_t, SharedDictionary> ordered;  // by column
  for (std::size_t at = 0; at < columns_.size(); ++at)
    if (columns_[at].ordered) {
      fields.push_back(schema_->GetFieldIndex(columns_[at].names[0]));
      ordered.emplace(at, SharedDictionary());
    }
  Batches batches(file_, messages_, std::move(fields));
  std::int64_t rows = 0;
  for (std::size_t chunk = 0; chunk < batches_.size(); ++chunk) {
    end_if_stopped(stop);
    const std::string where = batch_name(static_cast<std::int64_t>(chunk));
    const auto batch = batches.read(batches_[chunk], where);
    for (auto& [at, dictionary] : ordered)
      dictionary.add(*array_of(*batch, columns_[at].names, file_, where));
    rows += batch->num_rows();
    ends_.push_back(rows);
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
