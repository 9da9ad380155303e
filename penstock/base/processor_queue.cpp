#include "penstock/base/processor_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "penstock/base/folder.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> threads_now() {
  std::error_code unknown;
  std::vector<fs::path> threads;
  for (const FolderEntry& thread : entries_of("/proc/self/task", unknown))
    threads.push_back(thread.path);
  return threads;
}

/// The kernel resolves the name when the file is opened: it stays the file of
/// that thread.
int opened(const fs::path& thread) {
  return ::open((thread / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
}

Nanoseconds queued(int file) {
  std::array<char, 96> text;
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return Nanoseconds(0);
  return queued_in({text.data(), static_cast<std::size_t>(size)})
      .value_or(Nanoseconds(0));
}

}  // namespace

std::optional<Nanoseconds> queued_in(std::string_view schedstat) {
  const std::size_t second = schedstat.find(' ');
  if (second == schedstat.npos) return std::nullopt;
  std::int64_t time = 0;
  const char* end = schedstat.data() + schedstat.size();
  if (std::from_chars(schedstat.data() + second + 1, end, time).ec !=
      std::errc())
    return std::nullopt;
  return Nanoseconds(time);
}

ProcessorQueue::ProcessorQueue()
    : before_(threads_now()), files_{opened("/proc/thread-self")} {}

ProcessorQueue::~ProcessorQueue() {
  for (int file : files_)
    if (file >= 0) ::close(file);
}

void ProcessorQueue::add_new_threads() {
  for (const fs::path& thread : threads_now())
    if (std::ranges::find(before_, thread) == before_.end()) {
      before_.push_back(thread);
      files_.push_back(opened(thread));
    }
}

Nanoseconds ProcessorQueue::now() const {
  Nanoseconds all{0};
  for (int file : files_) all += queued(file);
  return all;
}

}  // namespace penstock
