#include "penstock/sources/postgres/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <new>
#include <thread>

#include "penstock/base/log.h"
#include "penstock/sources/postgres/conninfo.h"

namespace penstock::postgres {
namespace {

struct Setting {
  const char* name;
  const char* value;
  int since;  // the version that knows it
};
// Dates in `where` are UTC, and those that are requested as text ISO-8601;
// compiling a scan costs more than it saves; a statement that is prepared once
// is planned once.
constexpr Setting kSettings[] = {
    {"TimeZone", "UTC", 0},
    {"DateStyle", "ISO", 0},
    {"IntervalStyle", "postgres", 0},
    {"jit", "off", 110000},
    {"plan_cache_mode", "force_generic_plan", 120000}};
// A lock is waited for no longer than that, unless the user has set a limit.
constexpr const char* kLockTimeout =
    "CASE current_setting('lock_timeout') WHEN '0' THEN '10s' ELSE "
    "current_setting('lock_timeout') END";
constexpr const char* kReadOnly = "default_transaction_read_only";
// Such a database holds bytes of any encoding. The server would end a whole
// scan at the first that are not UTF-8; taken as they are, their row can be
// named.
constexpr const char* kAnyBytes = "SQL_ASCII";
constexpr const char* kBegin =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
constexpr const char* kTimeoutS = "10";
constexpr int kStopPollMs = 100;
constexpr std::chrono::seconds kCancelDeadline{2};
constexpr std::size_t kCancelSays =
    256;  // the size that the manual of PQcancel gives

// Defaults for a network that loses the server without a word: an idle
// connection ends after two minutes, and so does one that sends.
constexpr std::pair<const char*, const char*> kNetworkLimits[] = {
    {"keepalives_idle", "60"},
    {"keepalives_interval", "10"},
    {"keepalives_count", "6"}};
constexpr std::pair<const char*, const char*> kSendLimit = {"tcp_user_timeout",
                                                            "120000"};
constexpr int kKnowsSendLimit = 120000;  // libpq 12

/// Binary parameters as libpq takes them; borrows their bytes.
struct Parameters {
  explicit Parameters(const std::vector<std::string>& all)
      : binary(all.size(), 1) {
    for (const std::string& parameter : all) {
      values.push_back(parameter.data());
      lengths.push_back(static_cast<int>(parameter.size()));
    }
  }
  int count() const { return static_cast<int>(values.size()); }

  std::vector<const char*> values;
  std::vector<int> lengths, binary;
};

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

std::string_view text_in(const Result& result, int row, int column) {
  return {PQgetvalue(result.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result.get(), row, column))};
}

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + '"';
}

Connection::Connection(const SourceSpec& spec, Use use, StopFlag stop,
                       std::chrono::seconds silence)
    : about_{.doing = (use == Use::to_read ? "cannot read " : "cannot write ") +
                      (!spec.query.empty()  ? "the query"
                       : spec.table.empty() ? "the database"
                                            : "table '" + spec.table + "'"),
             .place = "postgresql://",
             .table = spec.table,
             .own_sql = !spec.query.empty()   ? "source.query"
                        : !spec.where.empty() ? "source.where"
                                              : ""},
      round_trip_(from_seconds(1e-3 * spec.round_trip_ms)),
      stop_(stop),
      silence_(silence) {
  check_readable(spec.uri);
  connect(spec.uri);
  set_up(use);
}

// A pooler (PgBouncer) that gives a session for a transaction at a time shares
// it with other programs: what is set there would be theirs too, and what was
// set or prepared before may be in another one. The number of the process tells
// it: a pooler has one of its own for each client. Then settings hold for
// single transactions alone, which begin() makes.
void Connection::set_up(Use use) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const Setting& one : kSettings)
    if (version() >= one.since) settings.emplace_back(one.name, one.value);
  if (use == Use::to_read && keeps_any_bytes())
    settings.emplace_back("client_encoding", kAnyBytes);
  if (use == Use::to_read) settings.emplace_back(kReadOnly, "on");
  const std::string pooled =
      "pg_backend_pid() <> " + std::to_string(PQbackendPID(get()));
  std::string sql = "SELECT " + pooled + ", set_config('lock_timeout', " +
                    kLockTimeout + ", " + pooled + ")";
  for (const auto& [name, value] : settings)
    sql += ", set_config('" + name + "', '" + value + "', " + pooled + ")";
  const Result set = execute(sql);
  pooled_ = text_in(set, 0, 0) == "t";
  begin_ = kBegin;
  if (!pooled_) return;
  begin_ +=
      "; SET LOCAL lock_timeout = '" + std::string(text_in(set, 0, 1)) + "'";
  for (const auto& [name, value] : settings)
    if (name != kReadOnly)
      begin_ += "; SET LOCAL " + name + " = '" + value + "'";
}

void Connection::connect(const std::string& uri) {
  // Settings before dbname are overridden by the connection string, those after
  // it override it.
  settings_.add("fallback_application_name", "penstock");
  if (std::getenv("PGCONNECT_TIMEOUT") == nullptr)
    settings_.add("connect_timeout", kTimeoutS);
  for (const auto& [name, value] : kNetworkLimits) settings_.add(name, value);
  if (PQlibVersion() >= kKnowsSendLimit)
    settings_.add(kSendLimit.first, kSendLimit.second);
  settings_.add("dbname", uri);
  settings_.add("client_encoding", "UTF8");
  Connecting made = connect_to(settings_, stop_);
  connection_ = std::move(made.handle);
  learn_place();
  if (!made.failure.empty())
    throw connection_failure(about_, without_secret(made.failure, password_));
  PQsetnonblocking(get(), 1);
  PQsetNoticeProcessor(
      get(),
      [](void*, const char* notice) {  // libpq is C: nothing may be thrown
        try {
          log(LogLevel::debug, "PostgreSQL: " + std::string(notice));
        } catch (const std::bad_alloc&) {
          log(LogLevel::debug, notice);
        }
      },
      nullptr);
}

bool Connection::keeps_any_bytes() const {
  return text_of(PQparameterStatus(get(), "server_encoding")) == kAnyBytes;
}

void Connection::learn_place() {
  Options options(PQconninfo(get()));
  std::string host = text_of(PQhost(get()));
  std::string port = text_of(PQport(get()));
  about_.database = text_of(PQdb(get()));
  about_.user = text_of(PQuser(get()));
  about_.sslmode = value_of(options, "sslmode");
  password_ = text_of(PQpass(get()));
  if (password_.empty()) password_ = value_of(options, "password");
  about_.place = host.starts_with('/') ? "postgresql:///" + about_.database +
                                             "?host=" + host + "&port=" + port
                                       : "postgresql://" + host + ":" + port +
                                             "/" + about_.database;
}

void Connection::pay_round_trip() const {
  if (round_trip_.count() > 0)
    wall_clock().sleep_until(wall_clock().now() + round_trip_);
  end_if_stopped(stop_);
}

std::string Connection::says(const PGresult* result) const {
  const char* primary =
      result == nullptr ? nullptr
                        : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (primary == nullptr)
    return without_secret(result == nullptr ? PQerrorMessage(get())
                                            : PQresultErrorMessage(result),
                          password_);
  std::string text = primary;
  if (const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL))
    text += std::string(" (") + detail + ")";
  return without_secret(std::move(text), password_);
}

Error Connection::error(const PGresult* result) const {
  const char* state = result == nullptr
                          ? nullptr
                          : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  std::string why = says(result);
  if (why.empty()) why = "the connection is closed";
  return statement_failure(about_, text_of(state), why);
}

/// Waits for the server until it is not busy, and sends what is left to send.
template <class Busy>
void Connection::wait_while(Busy busy) {
  auto heard = std::chrono::steady_clock::now();
  while (busy()) {
    if (stop_.is_set()) {
      cancel();
      break_off();
      end_if_stopped(stop_);
    }
    // poll() does not see what TLS has decrypted already: so this comes first.
    // Where it fails, the call that follows reports why.
    const int unsent = PQflush(get());
    if (unsent < 0 || PQconsumeInput(get()) == 0 || !busy()) return;
    const int events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
    pollfd server{.fd = PQsocket(get()),
                  .events = static_cast<short>(events),
                  .revents = 0};
    if (::poll(&server, 1, kStopPollMs) > 0)
      heard = std::chrono::steady_clock::now();
    else if (std::chrono::steady_clock::now() - heard > silence_) {
      check_silence();
      heard = std::chrono::steady_clock::now();
    }
  }
}

/// A statement that takes long and a server that is gone look alike from here.
/// But only the latter lets a new connection wait as well.
void Connection::check_silence() {
  if (!connect_to(settings_, stop_).timed_out) return;
  break_off();
  throw silent_failure(about_, silence_.count());
}

/// Whatever libpq is asked from here on fails at once instead of waiting.
void Connection::break_off() noexcept {
  broken_off_ = true;
  ::shutdown(PQsocket(get()), SHUT_RDWR);
}

Result Connection::next_result() {
  wait_while([&] { return PQisBusy(get()) != 0; });
  return Result(PQgetResult(get()));
}

int Connection::copy_bytes(char** bytes) {
  int size = 0;
  auto none_yet = [&] {
    size = PQgetCopyData(get(), bytes, 1);
    return size == 0;
  };
  wait_while(none_yet);
  return size != 0 ? size : PQgetCopyData(get(), bytes, 0);
}

// The connection does not block: libpq buffers without limit, so this waits
// until all has been sent. Memory is thereby bounded by one call's bytes.
int Connection::put_copy(std::string_view bytes) {
  const int put =
      PQputCopyData(get(), bytes.data(), static_cast<int>(bytes.size()));
  wait_while([&] { return PQflush(get()) > 0; });
  return put;
}

// PQcancel waits without limit for a server that has stopped answering, and
// only libpq knows the key that a request to cancel needs. It uses nothing but
// what it is given and the system's calls, so its thread may be left behind.
void Connection::cancel() noexcept try {
  std::shared_ptr<PGcancel> cancel(PQgetCancel(get()), PQfreeCancel);
  if (cancel == nullptr) return;
  std::promise<void> promised;
  std::future<void> sent = promised.get_future();
  std::thread([cancel, promised = std::move(promised)]() mutable {
    char says[kCancelSays];
    PQcancel(cancel.get(), says, sizeof(says));  // or the server finishes it
    promised.set_value();
  }).detach();
  sent.wait_for(kCancelDeadline);
} catch (const std::exception&) {  // no thread, no memory: the server finishes
}

/// The last result, or the first that is an error: when a server ends, its own
/// error comes before libpq's "connection lost".
Result Connection::answer(int sent) {
  if (sent == 0) throw error(nullptr);
  Result last;
  while (Result result = next_result()) {
    switch (PQresultStatus(result.get())) {
      case PGRES_COPY_OUT:
      case PGRES_COPY_IN:
        return result;
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK:
        last = std::move(result);
        break;
      default:
        Error failed = error(result.get());
        while (next_result() != nullptr) {
        }
        throw failed;
    }
  }
  if (last == nullptr) throw error(nullptr);
  return last;
}

Result Connection::execute(const std::string& sql) {
  pay_round_trip();
  return answer(PQsendQuery(get(), sql.c_str()));
}

Result Connection::ask(const std::string& sql,
                       const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  for (const std::string& parameter : parameters)
    values.push_back(parameter.c_str());
  pay_round_trip();
  return answer(PQsendQueryParams(get(), sql.c_str(),
                                  static_cast<int>(values.size()), nullptr,
                                  values.data(), nullptr, nullptr, 0));
}

Result Connection::attempt(const std::string& sql) {
  pay_round_trip();
  if (PQsendQueryParams(get(), sql.c_str(), 0, nullptr, nullptr, nullptr,
                        nullptr, 1) == 0)
    throw error(nullptr);
  return only_result();
}

// All results must be taken, up to a null one, before the next statement.
Result Connection::only_result() {
  Result first = next_result();
  while (next_result() != nullptr) {
  }
  return first;
}

Result Connection::describe(const std::string& sql) {
  if (!pooled_) return describe_here(sql);
  execute(begin_);
  Result described = describe_here(sql);
  clean_up("ROLLBACK");
  return described;
}

Result Connection::describe_here(const std::string& sql) {
  pay_round_trip();
  if (PQsendPrepare(get(), "", sql.c_str(), 0, nullptr) == 0)
    throw error(nullptr);
  Result parsed = only_result();
  if (PQresultStatus(parsed.get()) != PGRES_COMMAND_OK) return parsed;
  if (PQsendDescribePrepared(get(), "") == 0) throw error(nullptr);
  return only_result();
}

void Connection::prepare(const std::string& name, const std::string& sql) {
  pay_round_trip();
  answer(PQsendPrepare(get(), name.c_str(), sql.c_str(), 0, nullptr));
}

Result Connection::run(const std::string& name,
                       const std::vector<std::string>& parameters) {
  const Parameters all(parameters);
  pay_round_trip();
  return answer(PQsendQueryPrepared(get(), name.c_str(), all.count(),
                                    all.values.data(), all.lengths.data(),
                                    all.binary.data(), 1));
}

Result Connection::run_in_transaction(
    const std::string& sql, const std::vector<std::string>& parameters) {
  execute(begin_);
  try {
    const Parameters all(parameters);
    pay_round_trip();
    Result result = answer(PQsendQueryParams(
        get(), sql.c_str(), all.count(), nullptr, all.values.data(),
        all.lengths.data(), all.binary.data(), 1));
    execute("COMMIT");
    return result;
  } catch (const Error&) {
    clean_up("ROLLBACK");
    throw;
  }
}

void Connection::clean_up(const char* sql) noexcept try {
  if (alive() && PQsendQuery(get(), sql) != 0) only_result();
} catch (const std::exception&) {
}

}  // namespace penstock::postgres
