#include "penstock/session/tcp_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct FreeList {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// How a connection that was begun ends: an errno, or 0.
int await_connection(const Descriptor& socket, SteadyClock::time_point until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - SteadyClock::now());
    pollfd written{.fd = socket.number(), .events = POLLOUT, .revents = 0};
    const int there =
        ::poll(&written, 1, static_cast<int>(std::max<long>(0, left.count())));
    if (there < 0 && errno == EINTR) continue;
    if (there < 0) return errno;
    if (there == 0) return ETIMEDOUT;
    int failure = 0;
    socklen_t length = sizeof(failure);
    ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &failure, &length);
    return failure;
  }
}

/// False: errno says why no connection came about before `until`.
Descriptor connected_to(const addrinfo& host, SteadyClock::time_point until) {
  Descriptor made(
      ::socket(host.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return made;
  int failure =
      ::connect(made.number(), host.ai_addr, host.ai_addrlen) == 0 ? 0 : errno;
  if (failure == EINPROGRESS) failure = await_connection(made, until);
  if (failure == 0) return made;
  made = Descriptor();
  errno = failure;
  return made;
}

}  // namespace

Descriptor connected_to(const std::string& host, std::uint16_t port,
                        SteadyClock::time_point until, std::string& why) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int unknown = ::getaddrinfo(
          host.c_str(), std::to_string(port).c_str(), &wanted, &first);
      unknown != 0) {
    why = ::gai_strerror(unknown);
    return Descriptor();
  }
  const std::unique_ptr<addrinfo, FreeList> all(first);
  int left = 0;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) ++left;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    const auto now = SteadyClock::now();
    if (Descriptor made = connected_to(*one, now + (until - now) / left--)) {
      why.clear();  // of an address before this one
      return made;
    }
    why = std::strerror(errno);
  }
  return Descriptor();
}

}  // namespace penstock
