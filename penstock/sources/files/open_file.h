#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "penstock/base/descriptor.h"
#include "penstock/base/regular_file.h"

namespace penstock::files {

/// A regular file that is open to be read; false: it could not be opened, and
/// why_not_opened(errno) says why.
inline Descriptor open_file(const std::string& path) {
  return Descriptor(open_regular_file(path.c_str()));
}

/// Fills `to` from a place in the file. What went wrong; empty: nothing.
inline std::string read_at(const Descriptor& file, std::int64_t at,
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
