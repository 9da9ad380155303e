#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "penstock/base/regular_file.h"

namespace penstock::files {

/// A regular file that is open to be read; false: it could not be opened, and
/// why_not_opened(errno) says why.
class OpenFile {
 public:
  explicit OpenFile(int number = -1) : number_(number) {}
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(OpenFile&& other) noexcept
      : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_;
};

inline OpenFile open_file(const std::string& path) {
  return OpenFile(open_regular_file(path.c_str()));
}

/// Fills `to` from a place in the file. What went wrong; empty: nothing.
inline std::string read_at(const OpenFile& file, std::int64_t at,
                           std::span<char> to) {
  while (!to.empty()) {
    const ::ssize_t read = ::pread(file.number(), to.data(), to.size(), at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return std::strerror(errno);
    if (read == 0)
      return "the file is shorter than when it was listed: " +
             std::to_string(to.size()) + " bytes are missing";
    to = to.subspan(static_cast<std::size_t>(read));
    at += read;
  }
  return {};
}

}  // namespace penstock::files
