#include "penstock/sources/text/plain_text.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/sources/files/input_file.h"
#include "penstock/sources/text/decoded.h"

namespace penstock::text {
namespace {

/// Of text that is read for its first line, or written again.
constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::int64_t kLongestLine = 64 << 20;

}  // namespace

// The temporary file has no name, so it is gone when the process ends, however
// that happens. It is mapped, not kept open: any number of readers share its
// pages.
PlainText::PlainText(files::DataFile file, const std::string& encoding,
                     StopFlag stop, std::optional<QuotationMarks> lines)
    : file_(std::move(file)), size_(file_.bytes) {
  if (is_compressed(file_) || !is_plain(encoding) || file_.store != nullptr)
    unpack_to_scratch(encoding, stop);
  if (!lines) return;
  std::string piece;
  std::int64_t at = 0;
  const auto more = [&]() -> std::span<const char> {
    piece.resize(static_cast<std::size_t>(std::min(
        {size_ - at, kLongestLine - at, static_cast<std::int64_t>(kPiece)})));
    read(at, piece.data(), piece.size());
    at += std::ssize(piece);
    return piece;
  };
  if (ends_with_return(*lines, more)) end_lines(*lines, stop);
}

void PlainText::unpack_to_scratch(const std::string& encoding, StopFlag stop) {
  const files::InputFile input(file_);
  std::unique_ptr<ScratchFile> scratch =
      real_files().scratch(files::scratch_folder());
  size_ = 0;
  ByteSink write = [&](std::span<const char> bytes) {
    end_if_stopped(stop);
    scratch->append(std::as_bytes(bytes));
    size_ += std::ssize(bytes);
  };
  if (is_plain(encoding)) {
    unpack(file_, input, write);
  } else {
    Transcoder transcoder(file_, encoding, write);
    unpack(file_, input,
           [&](std::span<const char> bytes) { transcoder.take(bytes); });
    transcoder.finish();
  }
  if (size_ > 0) plain_ = scratch->map();
  log(LogLevel::info, file_.path + ": " + std::to_string(size_) +
                          " bytes of plain text in a temporary file");
}

void PlainText::end_lines(const QuotationMarks& marks, StopFlag stop) {
  std::unique_ptr<ScratchFile> scratch =
      real_files().scratch(files::scratch_folder());
  std::int64_t size = 0;
  LineEnds ends(marks, [&](std::span<const char> bytes) {
    end_if_stopped(stop);
    scratch->append(std::as_bytes(bytes));
    size += std::ssize(bytes);
  });
  std::string piece;
  for (std::int64_t at = 0; at < size_; at += std::ssize(piece)) {
    piece.resize(static_cast<std::size_t>(
        std::min(size_ - at, static_cast<std::int64_t>(kPiece))));
    read(at, piece.data(), piece.size());
    ends.take(piece);
  }
  plain_ = scratch->map();
  size_ = size;
  log(LogLevel::info,
      file_.path +
          ": the lines end with a carriage return; the file is read from a "
          "temporary copy in which they end with a line feed");
}

std::string PlainText::place(std::int64_t line) const {
  return file_.path + ":" + std::to_string(line);
}

void PlainText::read(std::int64_t offset, char* to, std::size_t size) const {
  if (size == 0) return;
  if (plain_ != nullptr) {
    std::memcpy(to, plain_->bytes().data() + offset, size);
    return;
  }
  const files::InputFile input(file_);
  while (size > 0) {
    const std::size_t got = input.read(offset, {to, size});
    if (got == 0) {
      files::check_unchanged(file_);
      throw Error(
          ErrorKind::source,
          {.code = "files.unreadable",
           .what = "cannot read '" + file_.path + "'",
           .where = "byte " + std::to_string(offset),
           .why =
               "the file system returns no bytes here, before the end of the "
               "file",
           .next = "check the disk and the permissions of the file"});
    }
    to += got;
    offset += static_cast<std::int64_t>(got);
    size -= got;
  }
}

}  // namespace penstock::text
