#include "penstock/session/rank_lifelines.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>

#include "penstock/base/formatted.h"
#include "penstock/base/log.h"

// 1. Rank 0 listens on a port that the kernel chooses, and gathers "PORT WORD"
//    to all. The word keeps strangers out: it is drawn for this run.
// 2. The others connect, which needs no answer, and send the word and their
//    rank; then all gather why they could not.
// 3. If all could, rank 0 takes the connections that wait at its port.
//
// A byte on a connection says that its rank leaves as planned.

namespace penstock {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr std::size_t kWord = 16;  // bytes, behind which stands the rank
constexpr char kLeaves = 'l';

/// Closes it, unless it is released.
class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

struct FreeList {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// -1, and errno says why.
int listening(int most) {
  const int made = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made >= 0) {
    const int both = 0;  // IPv4, too
    ::setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
    if (::listen(made, most) == 0) return made;
    ::close(made);
  }
  const int old = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (old >= 0 && ::listen(old, most) == 0) return old;
  if (old >= 0) ::close(old);
  return -1;
}

std::string port_of(int listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) !=
      0)
    return {};
  char port[16] = "";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, nullptr, 0,
                port, sizeof(port), NI_NUMERICSERV);
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

bool is_ready(int socket, short events, int patience_ms) {
  pollfd one{.fd = socket, .events = events, .revents = 0};
  return ::poll(&one, 1, patience_ms) == 1;
}

/// The kernel asks a machine that is silent whether it is still there.
void keep_alive(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
}

/// The connection; -1, and `why` says why it could not be made.
int connected(const addrinfo& host, std::string& why) {
  Socket made(
      ::socket(host.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int failure = made.number() < 0 || ::connect(made.number(), host.ai_addr,
                                               host.ai_addrlen) != 0
                    ? errno
                    : 0;
  if (failure == EINPROGRESS) {
    socklen_t length = sizeof(failure);
    if (!is_ready(made.number(), POLLOUT, kPatienceMs))
      failure = ETIMEDOUT;
    else
      ::getsockopt(made.number(), SOL_SOCKET, SO_ERROR, &failure, &length);
  }
  if (failure == 0) return made.release();
  why = std::strerror(failure);
  return -1;
}

int connected(const std::string& master, const std::string& port,
              std::string& why) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int unknown =
          ::getaddrinfo(master.c_str(), port.c_str(), &wanted, &first);
      unknown != 0) {
    why = ::gai_strerror(unknown);
    return -1;
  }
  const std::unique_ptr<addrinfo, FreeList> all(first);
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next)
    if (const int made = connected(*one, why); made >= 0) return made;
  return -1;
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
  Socket listener(first ? listening(rank.world) : -1);
  const std::string drawn = first ? drawn_word() : "";
  const std::string port =
      listener.number() >= 0 ? port_of(listener.number()) : "";
  const std::string told = gather(port.empty() ? "" : port + " " + drawn).at(0);
  const std::size_t space = told.find(' ');
  const bool open = space != told.npos && told.size() == space + 1 + kWord;
  const std::string word = open ? told.substr(space + 1) : "";
  std::string why = open ? "" : "rank 0 could not open a port";
  if (open && !first) {
    Socket made(connected(master, told.substr(0, space), why));
    const Greeting greeting = greeting_of(word, rank.rank);
    if (made.number() >= 0 &&
        ::send(made.number(), greeting.data(), greeting.size(), MSG_NOSIGNAL) ==
            std::ssize(greeting)) {
      keep_alive(made.number());
      lines_.push_back({.rank = 0, .socket = made.release()});
    } else if (why.empty()) {
      why = "the connection broke";
    }
    if (!why.empty())
      why = "rank " + std::to_string(rank.rank) + " to " + master + ":" +
            told.substr(0, space) + ": " + why;
  }
  for (const std::string& of_rank : gather(why)) {
    if (of_rank.empty()) continue;
    if (first)
      log(LogLevel::warning,
          "the end of a rank may be noticed late, because not all could "
          "connect to rank 0: " +
              of_rank);
    for (const Line& line : lines_) ::close(line.socket);
    lines_.clear();
    return;
  }
  if (first) accept_all(listener.number(), rank.world, word);
}

void RankLifelines::accept_all(int listener, int world,
                               const std::string& word) {
  while (std::ssize(lines_) < world - 1 &&
         is_ready(listener, POLLIN, kPatienceMs)) {
    Socket taken(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Greeting greeting{};
    std::int32_t rank = 0;
    if (taken.number() < 0 || !is_ready(taken.number(), POLLIN, kPatienceMs) ||
        ::recv(taken.number(), greeting.data(), greeting.size(), 0) !=
            std::ssize(greeting) ||
        std::memcmp(greeting.data(), word.data(), kWord) != 0)
      continue;  // a stranger, or a rank that has gone
    std::memcpy(&rank, greeting.data() + kWord, sizeof(rank));
    keep_alive(taken.number());
    lines_.push_back({.rank = rank, .socket = taken.release()});
  }
}

RankLifelines::~RankLifelines() {
  for (const Line& line : lines_) ::close(line.socket);
}

std::vector<int> RankLifelines::gone() const {
  std::vector<int> ranks;
  for (const Line& line : lines_) {
    char byte = 0;
    const ssize_t read = ::recv(line.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool silent =
        read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!silent && (read <= 0 || byte != kLeaves)) ranks.push_back(line.rank);
  }
  return ranks;
}

void RankLifelines::leave() const {
  for (const Line& line : lines_)
    static_cast<void>(::send(line.socket, &kLeaves, 1, MSG_NOSIGNAL));
}

}  // namespace penstock
