#include "penstock/sources/text/plain_text.h"

#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/sources/files/input_file.h"
#include "penstock/sources/text/decoded.h"

namespace penstock::text {
PlainText::PlainText(files::DataFile file, const std::string& encoding,
                     StopFlag stop)
    : file_(std::move(file)) {
  size_ = file_.bytes;
  const files::InputFile input(file_);
  if (!is_compressed(file_) && is_plain(encoding) && file_.store == nullptr)
    return;
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
      throw Error(ErrorKind::source,
                  {.code = "files.unreadable",
                   .what = "cannot read '" + file_.path + "'",
                   .where = "byte " + std::to_string(offset),
                   .why = "it ends there",
                   .next = "check the disk, or who may read the file"});
    }
    to += got;
    offset += static_cast<std::int64_t>(got);
    size -= got;
  }
}

}  // namespace penstock::text
