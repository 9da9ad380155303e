#include "penstock/transforms/named_files.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "penstock/base/error.h"

namespace penstock {

Bytes bytes_of(std::span<const NamedFile> files) {
  Bytes bytes;
  for (const NamedFile& file : files) {
    bytes.append_value(file.stamp);
    bytes.append(file.path.c_str(), file.path.size() + 1);
  }
  return bytes;
}

std::vector<NamedFile> named_files_of(std::span<const std::byte> bytes) {
  std::vector<NamedFile> files;
  while (!bytes.empty()) {
    NamedFile file;
    const auto rest = bytes.subspan(std::min(bytes.size(), sizeof(file.stamp)));
    const auto end = std::ranges::find(rest, std::byte(0));
    PENSTOCK_ASSERT(end != rest.end(), "a path ends with a zero byte");
    std::memcpy(&file.stamp, bytes.data(), sizeof(file.stamp));
    const auto size = static_cast<std::size_t>(end - rest.begin());
    file.path.assign(reinterpret_cast<const char*>(rest.data()), size);
    files.push_back(std::move(file));
    bytes = rest.subspan(size + 1);
  }
  return files;
}

std::string changed_file(std::span<const NamedFile> files) {
  constexpr std::size_t kFew = 256, kMostThreads = 16;
  const std::size_t threads =
      std::clamp<std::size_t>(files.size() / kFew, 1, kMostThreads);
  std::atomic<std::size_t> first = files.size();
  auto look = [&](std::size_t from) {
    for (std::size_t at = from; at < first.load(std::memory_order_relaxed);
         at += threads) {
      if (digest_of(stamp_of(files[at].path)) == files[at].stamp) continue;
      std::size_t known = first;
      while (at < known && !first.compare_exchange_weak(known, at)) {
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t from = 1; from < threads; ++from)
      others.emplace_back(look, from);
    look(0);
  }
  return first < files.size() ? files[first].path : std::string();
}

void FileNotes::add(std::string path, const std::optional<FileStamp>& stamp) {
  if (!files_.empty() && files_.back().path == path) return;
  files_.push_back({std::move(path), digest_of(stamp)});
}

void FileNotes::merge(FieldNotes& other) {
  const std::span<const NamedFile> more = other.files();
  files_.insert(files_.end(), more.begin(), more.end());
  // Files that many rows name are kept once as soon as that saves memory.
  if (files_.size() < 2 * unique_) return;
  std::ranges::sort(files_);
  files_.erase(std::unique(files_.begin(), files_.end()), files_.end());
  unique_ = std::max<std::size_t>(files_.size(), 1024);
}

std::unique_ptr<FieldNotes> file_notes_of(std::span<const std::byte> saved) {
  auto notes = std::make_unique<FileNotes>();
  notes->files_ = named_files_of(saved);
  return changed_file(notes->files_).empty() ? std::move(notes) : nullptr;
}

}  // namespace penstock
