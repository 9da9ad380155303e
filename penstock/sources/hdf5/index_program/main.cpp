// Indexes files of HDF5 for the plugin, in a process of its own: libhdf5 reads
// damaged files in ways that end its process. It may write no file, and has a
// bound of memory; who started it ends it when it says nothing for long.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "penstock/sources/hdf5/index_program/file_index.h"

namespace penstock::hdf5 {
namespace {

constexpr std::uint32_t kLongestPath = 1 << 16;

void write_all(const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);  // nobody listens any more
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

bool read_all(void* bytes, std::size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::read(STDIN_FILENO, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void send(Frame kind, std::string_view bytes) {
  const FrameHead head{.kind = kind, .unused = {}, .bytes = bytes.size()};
  write_all(&head, sizeof(head));
  write_all(bytes.data(), bytes.size());
}

/// Says at most ten times a second that it is alive.
void tell_progress() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last = Clock::now();
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(100)) return;
  last = now;
  send(Frame::progress, {});
}

void limit(int what, rlim_t to) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  now.rlim_cur = std::min(to, now.rlim_max);
  now.rlim_max = now.rlim_cur;
  ::setrlimit(what, &now);
}

void serve(FileDriver& driver, const std::string& path) {
  try {
    send_index(path, driver, send, tell_progress);
  } catch (const IndexFailure& failure) {
    Json why(Json::Object{});
    why["code"] = failure.code;
    why["why"] = failure.why;
    why["next"] = failure.next;
    send(Frame::failed, why.dump());
  }
  send(Frame::done, {});
}

// Each limit answers a way in which a damaged file hurts: memory that it asks
// for (8 GiB of address space, so that an allocation fails instead of the
// machine), core files, and writes of any kind. The program dies with the
// process that started it, even if that one is killed.
int run() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
#ifndef PENSTOCK_SANITIZED
  limit(RLIMIT_AS, rlim_t{8} << 30);
#endif
  std::signal(SIGPIPE, SIG_DFL);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5open();
  H5PLset_loading_state(0);  // no code that lies about is loaded
  FileDriver driver(tell_progress);
  std::uint32_t length = 0;
  while (read_all(&length, sizeof(length))) {
    std::string path(std::min(length, kLongestPath), '\0');
    if (length > kLongestPath || !read_all(path.data(), path.size())) return 1;
    serve(driver, path);
  }
  return 0;
}

}  // namespace
}  // namespace penstock::hdf5

int main() {
  try {
    return penstock::hdf5::run();
  } catch (const std::bad_alloc&) {
    return 12;  // read by the engine: out of memory
  } catch (const std::exception&) {
    return 1;
  }
}
