#include "penstock/trainer/ranks/network_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace penstock {
namespace {

struct FreeList {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

bool same_address(const sockaddr& a, const sockaddr& b) {
  if (a.sa_family != b.sa_family) return false;
  if (a.sa_family == AF_INET)
    return std::memcmp(&reinterpret_cast<const sockaddr_in&>(a).sin_addr,
                       &reinterpret_cast<const sockaddr_in&>(b).sin_addr,
                       sizeof(in_addr)) == 0;
  if (a.sa_family == AF_INET6)
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                       &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr,
                       sizeof(in6_addr)) == 0;
  return false;
}

std::string interface_with(const sockaddr& address) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeList> all(first);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && same_address(*one->ifa_addr, address))
      return one->ifa_name;
  return {};
}

/// The interface of the address that the kernel would send from. A datagram
/// socket that is connected sends nothing: the kernel only looks up the route.
std::string interface_to(const addrinfo& host) {
  const int socket = ::socket(host.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  auto* address = reinterpret_cast<sockaddr*>(&from);
  const bool known = ::connect(socket, host.ai_addr, host.ai_addrlen) == 0 &&
                     ::getsockname(socket, address, &length) == 0;
  ::close(socket);
  return known ? interface_with(*address) : std::string();
}

using SteadyClock = std::chrono::steady_clock;

/// 0, or why no connection came about before `until`: an errno.
int failure_to_connect(const addrinfo& host, SteadyClock::time_point until) {
  const int socket =
      ::socket(host.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return errno;
  int failure =
      ::connect(socket, host.ai_addr, host.ai_addrlen) == 0 ? 0 : errno;
  if (failure == EINPROGRESS) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - SteadyClock::now());
    pollfd written{.fd = socket, .events = POLLOUT, .revents = 0};
    const int there =
        ::poll(&written, 1, static_cast<int>(std::max<long>(0, left.count())));
    socklen_t length = sizeof(failure);
    if (there <= 0)
      failure = ETIMEDOUT;
    else
      ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &length);
  }
  ::close(socket);
  return failure;
}

/// Empty, or why none of the host's addresses answers.
std::string failure_to_connect(const std::string& host, std::uint16_t port,
                               SteadyClock::time_point until) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int unknown = ::getaddrinfo(
          host.c_str(), std::to_string(port).c_str(), &wanted, &first);
      unknown != 0)
    return ::gai_strerror(unknown);
  const std::unique_ptr<addrinfo, FreeList> all(first);
  std::string why;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    const int failure = failure_to_connect(*one, until);
    if (failure == 0) return {};
    why = std::strerror(failure);
  }
  return why;
}

}  // namespace

std::string why_unreachable(const std::string& host, std::uint16_t port,
                            std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kAskAgain(100);
  const SteadyClock::time_point until = SteadyClock::now() + patience;
  for (;;) {
    std::string why = failure_to_connect(host, port, until);
    if (why.empty() || SteadyClock::now() + kAskAgain >= until) return why;
    std::this_thread::sleep_for(kAskAgain);
  }
}

std::string interface_to(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted,
                    &first) != 0)
    return {};
  const std::unique_ptr<addrinfo, FreeList> all(first);
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next)
    if (std::string name = interface_to(*one); !name.empty()) return name;
  return {};
}

}  // namespace penstock
