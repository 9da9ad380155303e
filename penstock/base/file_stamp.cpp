#include "penstock/base/file_stamp.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <span>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"

namespace penstock {

FileStamp stamp_of(const struct stat& found) {
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .bytes = found.st_size,
          .modified_ns = nanoseconds_of(found.st_mtim),
          .changed_ns = nanoseconds_of(found.st_ctim)};
}

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return stamp_of(found);
}

std::uint64_t digest_of(const std::optional<FileStamp>& stamp) {
  if (!stamp) return 0;
  const std::int64_t numbers[] = {static_cast<std::int64_t>(stamp->inode),
                                  stamp->bytes, stamp->modified_ns,
                                  stamp->changed_ns};
  return hash64(std::as_bytes(std::span(numbers)));
}

std::int64_t file_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds_of(now);
}

bool may_be_gone_since(std::int64_t time_ns, const std::string& path) {
  std::filesystem::path folder = path;
  std::optional<FileStamp> stamp;
  do {
    folder = folder.parent_path();
    stamp = stamp_of(folder.empty() ? "." : folder.string());
  } while (!stamp && folder.has_relative_path());
  return stamp && stamp->modified_ns > time_ns;
}

void refuse_changed(const std::string& path, const std::string& how) {
  throw Error(ErrorKind::source,
              {.code = "files.changed",
               .what = "cannot continue to read the file",
               .where = path,
               .why = "the file has changed since it was opened: " + how,
               .next = "start again when the file is complete, and add new "
                       "rows as new files"});
}

// The time of change (ctime) decides, which unlike that of modification cannot
// be set by a program, and which renaming changes, too.
void check_unchanged_since(std::int64_t opened_ns,
                           const std::optional<FileStamp>& now,
                           const std::string& path) {
  if (!now) {
    if (may_be_gone_since(opened_ns, path))
      refuse_changed(path, "the file is gone");
    return;
  }
  if (now->changed_ns <= opened_ns) return;
  const std::int64_t later_ms = (now->changed_ns - opened_ns) / 1'000'000;
  refuse_changed(path, "the file was written, replaced or renamed " +
                           std::to_string(later_ms) + " ms later");
}

void FileStamps::add(const std::optional<FileStamp>& stamp) {
  if (!stamp) return all_.add("none\n");
  auto device = std::ranges::find(devices_, stamp->device);
  const auto at = device - devices_.begin();
  if (device == devices_.end()) devices_.push_back(stamp->device);
  all_.add(std::to_string(at) + " " + std::to_string(stamp->inode) + " " +
           std::to_string(stamp->bytes) + " " +
           std::to_string(stamp->modified_ns) + " " +
           std::to_string(stamp->changed_ns) + "\n");
}

}  // namespace penstock
