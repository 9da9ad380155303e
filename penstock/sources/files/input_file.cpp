#include "penstock/sources/files/input_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/regular_file.h"

namespace penstock::files {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 23;  // of a request

int opened(const DataFile& file) {
  if (file.store != nullptr) return -1;
  const int number = open_regular_file(file.path.c_str());
  if (number >= 0) return number;
  throw Error(ErrorKind::source, {.code = "files.unreadable",
                                  .what = "cannot open the file",
                                  .where = file.path,
                                  .why = why_not_opened(errno),
                                  .next = "check the permissions of the file"});
}

}  // namespace

InputFile::InputFile(const DataFile& file)
    : file_(file),
      stored_(file.store == nullptr
                  ? nullptr
                  : file.store->open({.path = file.path,
                                      .bytes = file.bytes,
                                      .changed_ns = file.changed_ns})),
      number_(opened(file)) {}

InputFile::~InputFile() {
  if (number_ >= 0) ::close(number_);
}

// pread() has no position of its own to share, which is what makes this
// thread-safe without a lock. It may give fewer bytes than asked for.
std::size_t InputFile::read(std::int64_t offset, std::span<char> to) const {
  if (stored_ != nullptr) return stored_->read(offset, to);
  for (;;) {
    const ssize_t got = ::pread(number_, to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ErrorKind::source,
                  {.code = "files.unreadable",
                   .what = "cannot read '" + file_.path + "'",
                   .where = "byte " + std::to_string(offset),
                   .why = std::strerror(errno),
                   .next = "check the disk and the permissions of the file"});
    return static_cast<std::size_t>(got);
  }
}

std::filesystem::path scratch_folder() {
  // Temporary folders may be kept in memory.
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
  try {
    real_files().make_folders(other, Readers::owner);
  } catch (const Error&) {  // then it is no place for files
  }
  return why_not_a_disk(other).empty() ? other : folder;
}

std::unique_ptr<FileMapping> copied_here(const DataFile& file, StopFlag stop) {
  const InputFile input(file);
  std::unique_ptr<ScratchFile> scratch = real_files().scratch(scratch_folder());
  std::vector<char> piece(kPiece);
  std::int64_t offset = 0;
  for (;;) {
    end_if_stopped(stop);
    const std::size_t got = input.read(offset, piece);
    if (got == 0) break;
    scratch->append(std::as_bytes(std::span(piece).first(got)));
    offset += static_cast<std::int64_t>(got);
  }
  if (offset != file.bytes) check_unchanged(file);
  log(LogLevel::info, file.path + ": " + std::to_string(offset) +
                          " bytes copied to a temporary file");
  return scratch->map();
}

}  // namespace penstock::files
