#include "penstock/sources/postgres/connecting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <new>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "penstock/sources/postgres/conninfo.h"

namespace penstock::postgres {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Host = std::pair<std::string, std::string>;  // its name and port

constexpr std::chrono::milliseconds kStopPoll{100};
constexpr int kShortestTimeoutS = 2;  // as libpq has it

std::string string_of(const char* text) { return text == nullptr ? "" : text; }

std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> entries;
  std::string entry;
  for (std::istringstream from(list); std::getline(from, entry, ',');)
    entries.push_back(entry);
  if (list.empty() || list.back() == ',') entries.emplace_back();
  return entries;
}

/// One attempt, which libpq walks through all addresses of all hosts.
class Attempt {
 public:
  Attempt(const ConnectionSettings& settings, StopFlag stop,
          std::set<Host>& silent);

  /// Whether the last failure is that of a deadline.
  bool timed_out() const { return cut_off_; }
  Handle take() { return std::move(handle_); }
  PGconn* get() const { return handle_.get(); }

 private:
  void poll_once(PostgresPollingStatusType& next);
  void learn_timeout();
  void start_deadline();

  StopFlag stop_;
  std::set<Host>& silent_;
  Handle handle_;
  std::string address_;
  std::optional<std::chrono::seconds> timeout_;
  SteadyClock::time_point deadline_;
  bool cut_off_ = false;
};

Attempt::Attempt(const ConnectionSettings& settings, StopFlag stop,
                 std::set<Host>& silent)
    : stop_(stop), silent_(silent) {
  std::vector<const char*> names = settings.names, values;
  for (const std::string& value : settings.values)
    values.push_back(value.c_str());
  names.push_back(nullptr);
  values.push_back(nullptr);
  handle_.reset(PQconnectStartParams(names.data(), values.data(), 1));
  if (get() == nullptr) throw std::bad_alloc();
  if (PQstatus(get()) == CONNECTION_BAD) return;
  learn_timeout();
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (next == PGRES_POLLING_WRITING || next == PGRES_POLLING_READING)
    poll_once(next);
}

void Attempt::learn_timeout() {
  const std::string text =
      value_of(Options(PQconninfo(get())), "connect_timeout");
  int seconds = 0;  // and so do a missing and a negative number: no limit
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (seconds > 0)
    timeout_ = std::chrono::seconds(std::max(seconds, kShortestTimeoutS));
  start_deadline();
}

void Attempt::start_deadline() {
  address_ = string_of(PQhost(get())) + " " + string_of(PQhostaddr(get())) +
             " " + string_of(PQport(get()));
  if (timeout_) deadline_ = SteadyClock::now() + *timeout_;
}

void Attempt::poll_once(PostgresPollingStatusType& next) {
  const std::string before = std::exchange(address_, {});
  const SteadyClock::time_point deadline = deadline_;
  start_deadline();
  if (address_ == before) deadline_ = deadline;
  pollfd server{.fd = PQsocket(get()),
                .events = static_cast<short>(
                    next == PGRES_POLLING_READING ? POLLIN : POLLOUT),
                .revents = 0};
  const int ready = ::poll(&server, 1, static_cast<int>(kStopPoll.count()));
  end_if_stopped(stop_);
  if (ready > 0) {
    cut_off_ = false;
    next = PQconnectPoll(get());
  } else if (timeout_ && SteadyClock::now() >= deadline_) {
    // libpq knows no other way to give up an address than that it fails. Where
    // the address had taken the connection in, the whole attempt fails.
    silent_.emplace(string_of(PQhost(get())), string_of(PQport(get())));
    ::shutdown(server.fd, SHUT_RDWR);
    cut_off_ = true;
    next = PQconnectPoll(get());
  }
}

/// The hosts of a connection but for those that are silent, as settings that
/// override the connection string's; nullopt: none is left.
std::optional<ConnectionSettings> without(const std::set<Host>& silent,
                                          PGconn* connection) {
  const Options options(PQconninfo(connection));
  const std::vector<std::string> hosts = entries_of(value_of(options, "host")),
                                 addresses =
                                     entries_of(value_of(options, "hostaddr")),
                                 ports = entries_of(value_of(options, "port"));
  const std::size_t count = std::max(hosts.size(), addresses.size());
  auto entry = [&](const std::vector<std::string>& of, std::size_t at) {
    return of.size() == 1 ? of[0] : at < of.size() ? of[at] : "";
  };
  std::string kept[3];
  for (std::size_t at = 0; at < count; ++at) {
    const std::string host = at < hosts.size() ? hosts[at] : "",
                      address = at < addresses.size() ? addresses[at] : "",
                      port = entry(ports, at);
    if (silent.contains({host.empty() ? address : host, port})) continue;
    if (host.empty() && address.empty()) continue;  // the default of libpq
    const std::string between = kept[2].empty() ? "" : ",";
    kept[0] += between + host;
    kept[1] += between + address;
    kept[2] += between + port;
  }
  if (kept[2].empty()) return std::nullopt;
  ConnectionSettings settings;
  if (hosts.size() == count) settings.add("host", kept[0]);
  if (addresses.size() == count && !addresses[0].empty())
    settings.add("hostaddr", kept[1]);
  settings.add("port", kept[2]);
  return settings;
}

}  // namespace

// libpq applies connect_timeout only in its blocking call. Here the steps are
// polled, so that a stop is heard, and a deadline is kept for each address.
// Each turn of the loop removes at least one silent host, so it ends.
Connecting connect_to(const ConnectionSettings& settings, StopFlag stop) {
  std::set<Host> silent;
  ConnectionSettings left = settings;
  std::size_t most = silent.size();
  for (;;) {
    Attempt attempt(left, stop, silent);
    if (PQstatus(attempt.get()) == CONNECTION_OK)
      return {.handle = attempt.take(), .failure = "", .timed_out = false};
    std::string failure;
    for (const auto& [host, port] : silent)
      failure += "connection to server at \"" + host + "\", port " + port +
                 " failed: timeout expired\n";
    const bool cut_off = attempt.timed_out();
    if (!cut_off) failure += string_of(PQerrorMessage(attempt.get()));
    std::optional<ConnectionSettings> others;
    if (cut_off && silent.size() > most)
      others = without(silent, attempt.get());
    most = silent.size();
    if (!others)
      return {.handle = attempt.take(),
              .failure = std::move(failure),
              .timed_out = cut_off};
    left = settings;
    for (std::size_t at = 0; at < others->names.size(); ++at)
      left.add(others->names[at], others->values[at]);
  }
}

}  // namespace penstock::postgres
