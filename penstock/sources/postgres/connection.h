#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/sources/postgres/connecting.h"
#include "penstock/sources/postgres/failure.h"
#include "penstock/sources/sources.h"

namespace penstock::postgres {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

/// The text in a result's row and column.
std::string_view text_in(const Result& result, int row, int column);

/// A name as an SQL identifier: it"s -> "it""s".
std::string identifier(std::string_view name);

/// One session with a server. Belongs to one thread at a time. Throws
/// Error(source) in words for people, with no password in them, or
/// Error(out_of_memory).
///
/// Connecting takes at most ten seconds, and a table that is locked is waited
/// for as long, unless the connection string says otherwise. Each text that is
/// sent costs one simulated round trip. Text comes in UTF-8, except from a
/// database in SQL_ASCII, whose bytes come as they are: their encoding is
/// unknown.
///
/// When `stop` is set, connecting or the running statement ends with
/// `run.stopped`, within a few seconds even if the server has stopped
/// answering. The server is asked to cancel the statement, and the connection
/// is then broken off: it is no longer alive().
///
/// A statement may take any time. But a server that has sent nothing for a
/// minute is tried by a second connection, and if that gets no answer either,
/// the statement ends with `postgres.silent`.
class Connection {
 public:
  enum class Use { to_read, to_write };

  /// `silence`: how long a server may send nothing before it is tried.
  Connection(const SourceSpec& spec, Use use, StopFlag stop = nullptr,
             std::chrono::seconds silence = std::chrono::seconds(60));

  /// Sends statements; the result is the last one's, as text.
  Result execute(const std::string& sql);
  /// One statement with the text parameters $1, $2, ...; a result as text.
  Result ask(const std::string& sql,
             const std::vector<std::string>& parameters);
  /// One statement, whose result is binary, and may be that it failed.
  Result attempt(const std::string& sql);
  /// The columns and parameters of one statement, which is parsed and not run;
  /// it may be that it failed.
  Result describe(const std::string& sql);
  /// Gives a statement a name that `run` knows.
  void prepare(const std::string& name, const std::string& sql);
  /// Binary parameters, a binary result.
  Result run(const std::string& name,
             const std::vector<std::string>& parameters);
  /// One statement with binary parameters in a transaction of its own that
  /// begins with begin(), a binary result.
  Result run_in_transaction(const std::string& sql,
                            const std::vector<std::string>& parameters);
  /// Tries to end a transaction. Errors are ignored: the next statement reports
  /// them.
  void clean_up(const char* sql) noexcept;

  /// The statements that begin a transaction which reads one snapshot, with the
  /// settings that a session of a pooler lacks.
  const std::string& begin() const { return begin_; }
  /// There is a pooler before the server. It may give every transaction another
  /// session, so nothing is set or prepared outside of one.
  bool pooled() const { return pooled_; }
  /// False when the server or the network is known to be gone.
  bool alive() const {
    return !broken_off_ && PQstatus(get()) == CONNECTION_OK;
  }
  int version() const { return PQserverVersion(get()); }
  /// "postgresql://db.lab:5432/lab".
  const std::string& place() const { return about_.place; }

  /// For a copy of rows, which walks the protocol by itself.
  PGconn* get() const { return connection_.get(); }
  /// As PQgetCopyData, which waits.
  int copy_bytes(char** bytes);
  /// As PQgetResult.
  Result next_result();
  /// As PQputCopyData, but returns when all bytes were handed to the system.
  int put_copy(std::string_view bytes);
  /// Asks the server to end the statement that runs. Gives up after two
  /// seconds.
  void cancel() noexcept;
  void pay_round_trip() const;
  /// Why `result` failed or, without one, the connection.
  Error error(const PGresult* result) const;
  /// The same text as `error` tells as its reason.
  std::string says(const PGresult* result) const;
  /// `what` for errors that others make of this connection's table.
  const About& about() const { return about_; }

 private:
  void connect(const std::string& uri);
  void set_up(Use use);
  void learn_place();
  bool keeps_any_bytes() const;
  template <class Busy>
  void wait_while(Busy busy);
  void check_silence();
  void break_off() noexcept;
  Result only_result();
  Result describe_here(const std::string& sql);
  Result answer(int sent);

  About about_;
  ConnectionSettings settings_;
  std::string password_;
  Nanoseconds round_trip_;
  StopFlag stop_;
  std::chrono::seconds silence_;
  std::string begin_;
  bool pooled_ = false;
  bool broken_off_ = false;
  Handle connection_;
};

}  // namespace penstock::postgres
