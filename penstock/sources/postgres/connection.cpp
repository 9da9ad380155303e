#include "penstock/sources/postgres/connection.h"

#include <poll.h>

#include <cstdlib>
#include <new>

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
constexpr int kHearStopMs = 100;
constexpr std::size_t kCancelSays =
    256;  // the size that the manual of PQcancel gives

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

Connection::Connection(const SourceSpec& spec, Use use, StopFlag stop)
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
      stop_(stop) {
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
  std::vector<const char*> names = {"fallback_application_name"};
  std::vector<const char*> values = {"penstock"};
  if (std::getenv("PGCONNECT_TIMEOUT") == nullptr) {
    names.push_back("connect_timeout");
    values.push_back(kTimeoutS);
  }
  for (auto [name, value] : {std::pair{"dbname", uri.c_str()},
                             {"client_encoding", "UTF8"},
                             {nullptr, nullptr}}) {
    names.push_back(name);
    values.push_back(value);
  }
  connection_.reset(PQconnectdbParams(names.data(), values.data(), 1));
  if (get() == nullptr) throw std::bad_alloc();
  learn_place();
  end_if_stopped(stop_);
  if (!alive()) throw connection_failure(about_, says(nullptr));
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

/// Waits for the server until it is not busy. False: a stop was requested.
/// Where nothing can stop it, the call that follows waits by itself.
template <class Busy>
bool Connection::wait_while(Busy busy) {
  if (!stop_.possible()) return true;
  while (busy()) {
    if (stop_.is_set()) return false;
    // poll() does not see what TLS has decrypted already: so this comes first.
    // Where it fails, the call that follows reports why.
    if (PQconsumeInput(get()) == 0 || !busy()) return true;
    pollfd server{.fd = PQsocket(get()), .events = POLLIN, .revents = 0};
    ::poll(&server, 1, kHearStopMs);
  }
  return true;
}

Result Connection::next_result() {
  if (!wait_while([&] { return PQisBusy(get()) != 0; })) {
    cancel();
    end_if_stopped(stop_);
  }
  return Result(PQgetResult(get()));
}

int Connection::copy_bytes(char** bytes) {
  int size = 0;
  auto none_yet = [&] {
    size = PQgetCopyData(get(), bytes, 1);
    return size == 0;
  };
  if (!wait_while(none_yet)) end_if_stopped(stop_);
  return size != 0 ? size : PQgetCopyData(get(), bytes, 0);
}

void Connection::cancel() noexcept {
  char says[kCancelSays];
  PGcancel* cancel = PQgetCancel(get());
  if (cancel == nullptr) return;
  PQcancel(cancel, says, sizeof(says));  // or the server finishes it
  PQfreeCancel(cancel);
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

void Connection::clean_up(const char* sql) noexcept {
  PQclear(PQexec(get(), sql));
}

}  // namespace penstock::postgres
