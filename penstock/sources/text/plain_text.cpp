#include "penstock/sources/text/plain_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/sources/text/decoded.h"

namespace penstock::text {
namespace {

/// On a disk, where there is one: temporary folders may be kept in memory.
std::filesystem::path scratch_folder() {
  std::error_code none;
  std::filesystem::path folder = std::filesystem::temp_directory_path(none);
  if (!none && why_not_a_disk(folder).empty()) return folder;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path other;
  if (cache != nullptr && *cache != '\0')
    other = cache;
  else if (home != nullptr)
    other = std::filesystem::path(home) / ".cache";
  if (other.empty()) return folder;
  other /= "penstock";
  std::filesystem::create_directories(other, none);
  return why_not_a_disk(other).empty() ? other : folder;
}

/// A file that is open for reading.
class OpenFile {
 public:
  explicit OpenFile(const files::DataFile& file)
      : number_(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ >= 0) return;
    throw Error(ErrorKind::source, {.code = "files.unreadable",
                                    .what = "cannot read '" + file.path + "'",
                                    .where = file.path,
                                    .why = std::strerror(errno),
                                    .next = "check who may read it"});
  }
  ~OpenFile() { ::close(number_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

}  // namespace

PlainText::PlainText(files::DataFile file, const std::string& encoding,
                     StopFlag stop)
    : file_(std::move(file)) {
  size_ = file_.bytes;
  const OpenFile open(file_);
  if (!is_compressed(file_) && is_plain(encoding)) return;
  std::unique_ptr<ScratchFile> scratch = real_files().scratch(scratch_folder());
  size_ = 0;
  ByteSink write = [&](std::span<const char> bytes) {
    end_if_stopped(stop);
    scratch->append(std::as_bytes(bytes));
    size_ += std::ssize(bytes);
  };
  if (is_plain(encoding)) {
    unpack(file_, open.number(), write);
  } else {
    Transcoder transcoder(file_, encoding, write);
    unpack(file_, open.number(),
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
  const OpenFile open(file_);
  while (size > 0) {
    ssize_t got = ::pread(open.number(), to, size, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) files::check_unchanged(file_);
      throw Error(ErrorKind::source,
                  {.code = "files.unreadable",
                   .what = "cannot read '" + file_.path + "'",
                   .where = "byte " + std::to_string(offset),
                   .why = got == 0 ? "it ends there" : std::strerror(errno),
                   .next = "check the disk, or who may read the file"});
    }
    to += got;
    offset += got;
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace penstock::text
