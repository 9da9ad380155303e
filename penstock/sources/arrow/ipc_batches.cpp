#include "penstock/sources/arrow/ipc_batches.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>

#include <cstring>
#include <optional>

#include "penstock/sources/arrow/arrow_error.h"
#include "penstock/sources/arrow/arrow_memory.h"
#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/arrow/ipc_footer.h"
#include "penstock/sources/arrow/stored_input.h"

// Record batches are decoded from messages, whose bodies lie in the mapping. A
// file's reader in Arrow would copy the fields that it is asked for.

namespace penstock::arrow_files {
namespace {

constexpr std::string_view kMark = "ARROW1";
constexpr std::int64_t kBehindMark = 8;
constexpr std::int64_t kFooterEnd = 4 + 6;  // its length, and the mark

using Input = std::shared_ptr<arrow::io::RandomAccessFile>;
using Messages = std::vector<std::shared_ptr<arrow::ipc::Message>>;

arrow::ipc::IpcReadOptions options_for(std::vector<int> fields) {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.memory_pool = memory();
  options.included_fields = std::move(fields);
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

/// Gives a stream reader the messages that it is to see next.
class Feed final : public arrow::ipc::MessageReader {
 public:
  explicit Feed(const Messages* queue) : queue_(queue) {}

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

// A dictionary batch replaces or extends (isDelta) the dictionary with its id
// for all record batches behind it ("Arrow Columnar Format", Dictionary
// Messages). So batches must be decoded with the dictionary messages before
// them, in order: forwards only those in between are fed, backwards all from
// the beginning. After a failure the stream's state is unknown, and it begins
// again as well.
class Decoder final : public IpcDecoder {
 public:
  /// `messages` begin with the schema; `batches` are the places of those that
  /// hold one.
  Decoder(const files::DataFile& file, const Messages& messages,
          const std::vector<std::size_t>& batches, std::vector<int> fields)
      : file_(file),
        messages_(messages),
        batches_(batches),
        options_(options_for(std::move(fields))) {}

  std::shared_ptr<arrow::RecordBatch> read(std::int64_t batch,
                                           const std::string& where) override {
    const std::size_t message = batches_[static_cast<std::size_t>(batch)];
    if (reader_ == nullptr || message < next_) begin(where);
    for (; next_ < message; ++next_)
      if (messages_[next_]->type() == arrow::ipc::MessageType::DICTIONARY_BATCH)
        queue_.push_back(messages_[next_]);
    queue_.push_back(messages_[next_++]);
    std::shared_ptr<arrow::RecordBatch> found;
    arrow::Status status = reader_->ReadNext(&found);
    if (!status.ok()) reader_.reset();
    check(status, file_, where);
    if (found == nullptr)
      refuse_damaged(file_, where, "the record batch holds no rows");
    return found;
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
  const std::vector<std::size_t>& batches_;
  const arrow::ipc::IpcReadOptions options_;
  Messages queue_;
  std::size_t next_ = 0;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> reader_;
};

/// The messages of a file, whichever way they were found.
class FoundBatches final : public IpcBatches {
 public:
  explicit FoundBatches(const files::DataFile& file) : file_(file) {}

  const std::shared_ptr<arrow::Schema>& schema() const override {
    return schema_;
  }
  std::int64_t count() const override { return std::ssize(batches_); }
  std::unique_ptr<IpcDecoder> decode(std::vector<int> fields) const override {
    return std::make_unique<Decoder>(file_, messages_, batches_,
                                     std::move(fields));
  }

  /// The first is the schema.
  void add(std::shared_ptr<arrow::ipc::Message> message) {
    const auto type = message->type();
    const std::string where = next_place();
    if (messages_.empty() != (type == arrow::ipc::MessageType::SCHEMA))
      fail(arrow::Status::Invalid("a message of type ",
                                  arrow::ipc::FormatMessageType(type),
                                  " is out of place"),
           file_, where);
    if (messages_.empty()) {
      arrow::ipc::DictionaryMemo memo;
      schema_ = checked(arrow::ipc::ReadSchema(*message, &memo), file_, where);
    }
    if (type == arrow::ipc::MessageType::RECORD_BATCH)
      batches_.push_back(messages_.size());
    messages_.push_back(std::move(message));
  }
  /// Of the message that is added next.
  std::string next_place() const {
    return messages_.empty() ? "its schema" : batch_name(count());
  }

 private:
  const files::DataFile& file_;
  Messages messages_;
  std::vector<std::size_t> batches_;  // by batch: its message
  std::shared_ptr<arrow::Schema> schema_;
};

// The streaming format has no footer: messages are read one after the other.
// Each is 0xFFFFFFFF, the length of its metadata, the metadata, and the body. A
// stream ends with a length of 0 or where the file ends.
std::unique_ptr<const IpcBatches> walk(const files::DataFile& file,
                                       const Input& input, StopFlag stop) {
  auto found = std::make_unique<FoundBatches>(file);
  auto stream = checked(
      arrow::io::RandomAccessFile::GetStream(input, 0, file.bytes), file, "");
  for (;;) {
    end_if_stopped(stop);
    auto next = checked(arrow::ipc::ReadMessage(stream.get(), memory()), file,
                        found->next_place());
    if (next == nullptr) break;
    found->add(std::move(next));
  }
  if (found->schema() == nullptr)
    refuse_format(file, "the file has no schema",
                  "check that this is an Arrow IPC file");
  return found;
}

// "Arrow Columnar Format", IPC File Format: "ARROW1" and two bytes of padding,
// the messages of a stream, the footer, its length (int32), "ARROW1". The
// footer has the schema and the place of each message.
std::unique_ptr<const IpcBatches> by_footer(const files::DataFile& file,
                                            const Input& input, StopFlag stop) {
  const std::string where = "its footer";
  auto bytes_at = [&](std::int64_t at, std::int64_t size) {
    return checked(input->ReadAt(at, size), file, where);
  };
  const std::int64_t end = file.bytes - kFooterEnd;
  std::int32_t size = 0;
  std::memcpy(&size, bytes_at(end, sizeof(size))->data(), sizeof(size));
  if (size <= 0 || size > end - kBehindMark)
    refuse_damaged(file, where,
                   "the footer declares " + std::to_string(size) +
                       " bytes, expected 1 to " +
                       std::to_string(end - kBehindMark));
  const std::optional<IpcFooter> footer =
      read_footer(bytes_at(end - size, size)->ToString());
  if (!footer)
    refuse_damaged(file, where,
                   "the tables of the footer contradict each other");
  auto found = std::make_unique<FoundBatches>(file);
  found->add(checked(
      arrow::ipc::Message::Open(arrow::Buffer::FromString(footer->schema),
                                arrow::Buffer::FromString("")),
      file, where));
  auto add = [&](const std::vector<IpcFooter::Block>& blocks) {
    for (const IpcFooter::Block& block : blocks) {
      end_if_stopped(stop);
      found->add(checked(
          arrow::ipc::ReadMessage(block.offset, block.metadata, input.get()),
          file, found->next_place()));
    }
  };
  add(footer->dictionaries);
  add(footer->batches);
  if (found->count() != std::ssize(footer->batches))
    refuse_damaged(file, where, "a block is not a record batch");
  return found;
}

Input input_of(const files::DataFile& file, StopFlag stop) {
  return std::make_shared<arrow::io::BufferReader>(mapped_buffer(file, stop));
}

bool has_mark(const files::DataFile& file, const Input& input,
              std::int64_t at) {
  const auto size = static_cast<std::int64_t>(kMark.size());
  return checked(input->ReadAt(at, size), file, "")->ToString() == kMark;
}

}  // namespace

std::unique_ptr<const IpcBatches> open_batches(const files::DataFile& file,
                                               StopFlag stop) {
  if (file.bytes == 0)
    refuse_format(file, "the file has 0 bytes",
                  "remove the file: an interrupted copy leaves such a file");
  const Input input = input_of(file, stop);
  if (!has_mark(file, input, 0)) return walk(file, input, stop);
  const auto mark = static_cast<std::int64_t>(kMark.size());
  if (file.bytes < kBehindMark + kFooterEnd ||
      !has_mark(file, input, file.bytes - mark))
    refuse_format(
        file,
        "the end of the file is missing: the file was not written completely",
        "write the file again, or get an intact copy");
  return by_footer(file, input, stop);
}

}  // namespace penstock::arrow_files
