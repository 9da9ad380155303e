#include "penstock/base/processor_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

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
  const std::string_view line(text.data(), static_cast<std::size_t>(size));
  const std::size_t second = line.find(' ');
  if (second == line.npos) return Nanoseconds(0);
  std::int64_t time = 0;
  std::from_chars(line.data() + second + 1, line.data() + line.size(), time);
  return Nanoseconds(time);
}

}  // namespace

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
