#include "penstock/sources/arrow/stored_input.h"

#include <arrow/buffer.h>

#include <algorithm>

#include "penstock/sources/arrow/arrow_memory.h"

namespace penstock::arrow_files {
namespace {

class StoredInput final : public arrow::io::RandomAccessFile {
 public:
  explicit StoredInput(const files::DataFile& file)
      : bytes_(file.bytes), input_(file) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return at_; }
  arrow::Status Seek(std::int64_t position) override {
    if (position < 0) return arrow::Status::Invalid("seek to ", position);
    at_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> GetSize() override { return bytes_; }

  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t size,
                                     void* out) override {
    if (position < 0 || size < 0)
      return arrow::Status::Invalid("read of ", size, " bytes at ", position);
    size = std::clamp<std::int64_t>(bytes_ - position, 0, size);
    try {
      std::int64_t done = 0;
      while (done < size) {
        const std::size_t got = input_.read(
            position + done, {static_cast<char*>(out) + done,
                              static_cast<std::size_t>(size - done)});
        if (got == 0) break;
        done += static_cast<std::int64_t>(got);
      }
      return done;
    } catch (...) {
      return arrow::Status::IOError("the file cannot be read")
          .WithDetail(std::make_shared<ThrownDetail>(std::current_exception()));
    }
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(
      std::int64_t position, std::int64_t size) override {
    size = std::clamp<std::int64_t>(bytes_ - position, 0, size);
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(size, memory()));
    ARROW_ASSIGN_OR_RAISE(std::int64_t got,
                          ReadAt(position, size, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

  arrow::Result<std::int64_t> Read(std::int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(std::int64_t got, ReadAt(at_, size, out));
    at_ += got;
    return got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(
      std::int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer,
                          ReadAt(at_, size));
    at_ += buffer->size();
    return buffer;
  }

 private:
  const std::int64_t bytes_;
  const files::InputFile input_;
  std::int64_t at_ = 0;
  bool closed_ = false;
};

/// Bytes of a mapping, which lives as long as they do.
class MappedBuffer final : public arrow::Buffer {
 public:
  explicit MappedBuffer(std::unique_ptr<FileMapping> mapping)
      : arrow::Buffer(
            reinterpret_cast<const std::uint8_t*>(mapping->bytes().data()),
            std::ssize(mapping->bytes())),
        mapping_(std::move(mapping)) {}

 private:
  const std::unique_ptr<FileMapping> mapping_;
};

}  // namespace

std::shared_ptr<arrow::io::RandomAccessFile> stored_input(
    const files::DataFile& file) {
  return std::make_shared<StoredInput>(file);
}

std::shared_ptr<arrow::Buffer> mapped_buffer(const files::DataFile& file,
                                             StopFlag stop) {
  return std::make_shared<MappedBuffer>(file.store != nullptr
                                            ? files::copied_here(file, stop)
                                            : map_data_file(file.path));
}

}  // namespace penstock::arrow_files
