#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/postgres/test_server.h"

namespace penstock {

/// A connection pooler in transaction mode, as unkind as one may be: whenever a
/// client is not in a transaction, its next statement goes to another session
/// of the server. As PgBouncer does, it gives clients a process number of its
/// own.
class TestPooler {
 public:
  TestPooler() {
    std::string made = "/tmp/penstock-pooler-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = made;
    listener_ = socket_at(folder_ / ".s.PGSQL.6432", ::bind);
    ::listen(listener_, 16);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~TestPooler() {
    ends_ = true;
    accepting_.join();
    for (std::thread& client : clients_) client.join();
    ::close(listener_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TestPooler(const TestPooler&) = delete;
  TestPooler& operator=(const TestPooler&) = delete;

  std::string uri() const {
    PGconn* found = PQconnectdb(test_postgres().c_str());
    const std::string user = PQuser(found), database = PQdb(found);
    PQfinish(found);
    return "postgresql://" + user + "@/" + database +
           "?host=" + folder_.string() + "&port=6432";
  }
  /// How often a client went on in another session.
  int switches() const { return switches_; }
  /// From here on nothing is passed on, and nobody is let in or refused.
  void stop_answering() { frozen_ = true; }

 private:
  static constexpr int kSessions = 3, kLookMs = 20;

  template <class Act>
  static int socket_at(const std::filesystem::path& path, Act act) {
    const int made = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (act(made, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      throw std::runtime_error("no socket at " + path.string());
    return made;
  }
  static std::filesystem::path server() {
    PGconn* found = PQconnectdb(test_postgres().c_str());
    const std::string path =
        std::string(PQhost(found)) + "/.s.PGSQL." + PQport(found);
    PQfinish(found);
    return path;
  }

  void accept_all() {
    while (!ends_) {
      pollfd wait{.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(frozen_ ? nullptr : &wait, frozen_ ? 0 : 1, kLookMs) <= 0)
        continue;
      const int client = ::accept(listener_, nullptr, nullptr);
      clients_.emplace_back([this, client] { serve(client); });
    }
  }

  /// Reads until there are `size` bytes. False: the other side has gone.
  bool fill(int from, std::string& bytes, std::size_t size) {
    char buffer[65536];
    while (bytes.size() < size) {
      pollfd wait{.fd = from, .events = POLLIN, .revents = 0};
      if (ends_) return false;
      if (::poll(frozen_ ? nullptr : &wait, frozen_ ? 0 : 1, kLookMs) == 0)
        continue;
      const ssize_t got =
          ::read(from, buffer, std::min(sizeof(buffer), size - bytes.size()));
      if (got <= 0) return false;
      bytes.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }
  /// A message: its letter, if it has one, its length, and the rest.
  bool take(int from, std::string& message, std::size_t letter = 1) {
    message.clear();
    if (!fill(from, message, letter + 4)) return false;
    const auto size = postgres::load_big<std::int32_t>(message.data() + letter);
    return fill(from, message, letter + static_cast<std::size_t>(size));
  }
  static bool send(int to, const std::string& bytes) {
    return ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// All that a server says until it is ready, to the client. The status of its
  /// transaction; 0: a side has gone.
  char answer(int server, int client) {
    std::string message;
    while (take(server, message)) {
      if (message[0] == 'K') message.replace(5, 4, std::string("\0\1\2\3", 4));
      if (client >= 0 && !send(client, message)) return 0;
      if (message[0] == 'Z') return message[5];
    }
    return 0;
  }

  void serve(int client) {
    std::vector<int> sessions;
    std::string message;
    bool open = take(client, message, 0);
    for (int i = 0; open && i < kSessions; ++i) {
      sessions.push_back(socket_at(server(), ::connect));
      open = send(sessions.back(), message) &&
             answer(sessions.back(), i == 0 ? client : -1) != 0;
    }
    for (std::size_t at = 0; open && take(client, message);) {
      open = message[0] != 'X' && send(sessions[at], message);
      if (!open || (message[0] != 'Q' && message[0] != 'S')) continue;
      const char status = answer(sessions[at], client);
      open = status != 0;
      if (status != 'I') continue;
      at = (at + 1) % sessions.size();
      ++switches_;
    }
    for (int session : sessions) ::close(session);
    ::close(client);
  }

  std::filesystem::path folder_;
  int listener_ = -1;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> frozen_ = false;
  std::atomic<int> switches_ = 0;
  std::list<std::thread> clients_;  // of accepting_ until it has ended
  std::thread accepting_;
};

}  // namespace penstock
