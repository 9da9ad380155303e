#include "penstock/transforms/audio/decode/sound_bytes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "penstock/base/regular_file.h"

namespace penstock {

void SoundBytes::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  memory_ = {};
  bytes_ = size_ = 0;
  other_.clear();
  window_.clear();
}

void SoundBytes::open(std::span<const std::byte> bytes) {
  close();
  memory_ = bytes;
  bytes_ = size_ = static_cast<std::int64_t>(bytes.size());
}

std::string SoundBytes::open_path(const std::string& path) {
  close();
  struct stat found {};
  file_ = open_regular_file(path.c_str());
  if (file_ < 0 || ::fstat(file_, &found) != 0) return why_not_opened(errno);
  bytes_ = size_ = found.st_size;
  return {};
}

std::size_t SoundBytes::read_file(std::int64_t at, std::span<std::byte> to) {
  if (at >= bytes_) return 0;
  to = to.first(std::min(to.size(), static_cast<std::size_t>(bytes_ - at)));
  if (file_ < 0) {
    std::memcpy(to.data(), memory_.data() + at, to.size());
    return to.size();
  }
  std::size_t done = 0;
  while (done < to.size()) {
    const ::ssize_t got = ::pread(file_, to.data() + done, to.size() - done,
                                  at + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t SoundBytes::read(std::int64_t at, std::span<std::byte> to) {
  if (at < 0 || at >= size_) return 0;
  to = to.first(std::min(to.size(), static_cast<std::size_t>(size_ - at)));
  std::size_t done = read_file(at, to);
  const std::int64_t end = at + static_cast<std::int64_t>(to.size());
  if (end > bytes_ && size_ > bytes_) {
    std::ranges::fill(to.subspan(done), std::byte{0});
    done = to.size();
  }
  const std::int64_t first = std::max(at, other_at_);
  const std::int64_t last =
      std::min(end, other_at_ + static_cast<std::int64_t>(other_.size()));
  if (first < last)
    std::memcpy(to.data() + (first - at), other_.data() + (first - other_at_),
                static_cast<std::size_t>(last - first));
  return done;
}

std::uint8_t SoundBytes::byte(std::int64_t at) {
  constexpr std::int64_t kWindow = 1 << 16;
  if (at < 0 || at >= size()) return 0;
  if (at < window_at_ ||
      at >= window_at_ + static_cast<std::int64_t>(window_.size())) {
    window_at_ = at / kWindow * kWindow;
    window_.resize(kWindow);
    window_.resize(read(window_at_, window_));
    if (at >= window_at_ + static_cast<std::int64_t>(window_.size())) return 0;
  }
  return static_cast<std::uint8_t>(
      window_[static_cast<std::size_t>(at - window_at_)]);
}

std::uint64_t SoundBytes::big(std::int64_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | byte(at + i);
  return value;
}

std::uint64_t SoundBytes::little(std::int64_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | byte(at + i);
  return value;
}

bool SoundBytes::has(std::int64_t at, std::string_view text) {
  for (const char c : text)
    if (byte(at++) != static_cast<std::uint8_t>(c)) return false;
  return true;
}

void SoundBytes::replace(std::int64_t at, std::string bytes) {
  other_at_ = at;
  other_ = std::move(bytes);
  window_.clear();
}

void SoundBytes::resize(std::int64_t size) {
  size_ = size;
  window_.clear();
}

}  // namespace penstock
