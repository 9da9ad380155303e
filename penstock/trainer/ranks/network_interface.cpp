#include "penstock/trainer/ranks/network_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <thread>

#include "penstock/session/session.h"

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
  const Descriptor socket(
      ::socket(host.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  auto* address = reinterpret_cast<sockaddr*>(&from);
  const bool known =
      ::connect(socket.number(), host.ai_addr, host.ai_addrlen) == 0 &&
      ::getsockname(socket.number(), address, &length) == 0;
  return known ? interface_with(*address) : std::string();
}

}  // namespace

std::string why_unreachable(const std::string& host, std::uint16_t port,
                            std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kAskAgain(100);
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::string why;
    if (connected_to(host, port, until, why)) return {};
    if (std::chrono::steady_clock::now() + kAskAgain >= until) return why;
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
