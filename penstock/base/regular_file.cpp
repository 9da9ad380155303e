#include "penstock/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace penstock {

int open_regular_file(const char* path) {
  // Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return -1;
  struct stat found {};
  if (::fstat(file, &found) == 0 && S_ISREG(found.st_mode)) return file;
  ::close(file);
  errno = S_ISDIR(found.st_mode) ? EISDIR : ENXIO;
  return -1;
}

std::string why_not_opened(int reason) {
  return reason == ENXIO
             ? "it is a pipe, a socket or a device, not a regular file"
             : std::strerror(reason);
}

}  // namespace penstock
