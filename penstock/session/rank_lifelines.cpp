#include "penstock/session/rank_lifelines.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "penstock/base/formatted.h"
#include "penstock/base/log.h"
#include "penstock/session/tcp_socket.h"

// 1. Rank 0 listens on a port that the kernel chooses, and gathers "PORT WORD"
//    to all. The word keeps strangers out: it is drawn for this run.
// 2. The others connect, which needs no answer, and send the word and their
//    rank; then all gather why they could not.
// 3. If all could, rank 0 takes the connections that wait at its port, and
//    gathers whether it has one of each. One that it has not taken would be
//    closed, and look like its own end.
//
// A byte on a connection says that its rank leaves as planned.

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kPatience(10'000), kOfStrangers(2'000);
constexpr std::size_t kWord = 16;  // bytes, behind which stands the rank
constexpr char kLeaves = 'l';

/// False: no port could be opened.
Descriptor listening(int most) {
  Descriptor made(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int both = 0;  // IPv4, too
  if (made)
    ::setsockopt(made.number(), IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
  if (made && ::listen(made.number(), most) == 0) return made;
  made = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (made && ::listen(made.number(), most) != 0) made = Descriptor();
  return made;
}

std::string port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  char port[16] = "";
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (listener && ::getsockname(listener.number(), any, &length) == 0)
    ::getnameinfo(any, length, nullptr, 0, port, sizeof(port), NI_NUMERICSERV);
  return port;
}

std::string drawn_word() {
  std::random_device random;
  std::string word;
  while (word.size() < kWord)
    word += formatted("%08x", static_cast<unsigned>(random()));
  word.resize(kWord);
  return word;
}

bool can_read(const Descriptor& socket, std::chrono::milliseconds patience) {
  pollfd one{.fd = socket.number(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do ready = ::poll(&one, 1, static_cast<int>(patience.count()));
  while (ready < 0 && errno == EINTR);
  return ready == 1;
}

/// The kernel asks after a minute of silence, which a firewall may end, whether
/// the other machine is still there, and for a minute more.
void keep_alive(const Descriptor& socket) {
  struct Option {
    int level, name, value;
  };
  for (const Option& one : {Option{SOL_SOCKET, SO_KEEPALIVE, 1},
                            Option{IPPROTO_TCP, TCP_KEEPIDLE, 60},
                            Option{IPPROTO_TCP, TCP_KEEPINTVL, 10},
                            Option{IPPROTO_TCP, TCP_KEEPCNT, 6}})
    ::setsockopt(socket.number(), one.level, one.name, &one.value,
                 sizeof(one.value));
}

using Greeting = std::array<char, kWord + sizeof(std::int32_t)>;

Greeting greeting_of(const std::string& word, std::int32_t rank) {
  Greeting greeting;
  std::memcpy(greeting.data(), word.data(), kWord);
  std::memcpy(greeting.data() + kWord, &rank, sizeof(rank));
  return greeting;
}

}  // namespace

RankLifelines::RankLifelines(const Rank& rank, const std::string& master,
                             const Gather& gather) {
  const bool first = rank.rank == 0;
  const Descriptor listener = first ? listening(rank.world) : Descriptor();
  const std::string drawn = first ? drawn_word() : "";
  const std::string port = port_of(listener);
  const std::string told = gather(port.empty() ? "" : port + " " + drawn).at(0);
  const std::size_t space = told.find(' ');
  const bool open = space != told.npos && told.size() == space + 1 + kWord;
  const std::string word = open ? told.substr(space + 1) : "";
  std::string why = open ? "" : "rank 0 could not open a port";
  if (open && !first) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    const auto number = static_cast<std::uint16_t>(std::stoi(told));
    Descriptor made = connected_to(master, number, until, why);
    const Greeting greeting = greeting_of(word, rank.rank);
    if (made && ::send(made.number(), greeting.data(), greeting.size(),
                       MSG_NOSIGNAL) == std::ssize(greeting)) {
      keep_alive(made);
      lines_.push_back({.rank = 0, .socket = std::move(made)});
    } else if (why.empty()) {
      why = "the connection broke";
    }
    if (!why.empty())
      why = "rank " + std::to_string(rank.rank) + " to " + master + ":" +
            told.substr(0, space) + ": " + why;
  }
  if (!keep_if_all_can(first, gather(why))) return;
  if (first) accept_all(listener, rank.world, word);
  if (first && std::ssize(lines_) < rank.world - 1)
    why = "rank 0 heard from " + std::to_string(lines_.size()) + " of " +
          std::to_string(rank.world - 1);
  keep_if_all_can(first, gather(why));
}

bool RankLifelines::keep_if_all_can(bool first,
                                    const std::vector<std::string>& whys) {
  const auto why = std::ranges::find_if_not(whys, &std::string::empty);
  if (why == whys.end()) return true;
  if (first)
    log(LogLevel::warning,
        "the end of a rank may be noticed late, because not all could "
        "connect to rank 0: " +
            *why);
  lines_.clear();
  return false;
}

void RankLifelines::accept_all(const Descriptor& listener, int world,
                               const std::string& word) {
  while (std::ssize(lines_) < world - 1 && can_read(listener, kPatience)) {
    Descriptor taken(
        ::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!taken && errno != EINTR && errno != ECONNABORTED) return;
    Greeting greeting{};
    std::int32_t rank = 0;
    if (!taken || !can_read(taken, kOfStrangers) ||
        ::recv(taken.number(), greeting.data(), greeting.size(), 0) !=
            std::ssize(greeting) ||
        std::memcmp(greeting.data(), word.data(), kWord) != 0)
      continue;  // a stranger, or a rank that has gone
    std::memcpy(&rank, greeting.data() + kWord, sizeof(rank));
    keep_alive(taken);
    lines_.push_back({.rank = rank, .socket = std::move(taken)});
  }
}

std::vector<int> RankLifelines::gone() const {
  std::vector<int> ranks;
  for (const Line& line : lines_) {
    char byte = 0;
    const ssize_t read =
        ::recv(line.socket.number(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool silent =
        read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!silent && (read <= 0 || byte != kLeaves)) ranks.push_back(line.rank);
  }
  return ranks;
}

void RankLifelines::leave() const {
  for (const Line& line : lines_)
    static_cast<void>(::send(line.socket.number(), &kLeaves, 1, MSG_NOSIGNAL));
}

}  // namespace penstock
