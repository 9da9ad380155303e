#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/sources/sources.h"

namespace penstock::sqlite {

struct CloseConnection {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};
using Statement = std::unique_ptr<sqlite3_stmt, CloseStatement>;

/// One connection to a database file. Belongs to one thread at a time, and
/// outlives its statements. Throws Error(source) in words for people, or
/// Error(out_of_memory).
///
/// The path names a regular file. Opening to read never makes one, opening to
/// write makes one that is missing. A lock of another process is waited for up
/// to two seconds. Statements end with the error of `stop` when it is set.
class Connection {
 public:
  enum class Open { to_read, to_write };

  Connection(const SourceSpec& spec, Open how, StopFlag stop = nullptr);
  Connection(const Connection&) = delete;  // SQLite looks at `stop_`
  Connection& operator=(const Connection&) = delete;

  Statement prepare(const std::string& sql);
  /// Sends a prepared statement: waits for the simulated latency, then gives
  /// the first row. False if none exists.
  bool send(sqlite3_stmt* statement);
  /// The next row of a statement that was sent.
  bool next(sqlite3_stmt* statement);
  /// Prepares and sends a statement without rows.
  void execute(const std::string& sql);
  /// The first number that a query gives; 0 where it gives none.
  std::int64_t number(const std::string& sql);
  /// Whether it may stay open without a use: others are not kept from anything
  /// then. Of a database with a write-ahead log they are, from removing it.
  bool keeps_nothing() const;
  /// The last error, as one about this connection's table. Throws the error of
  /// `stop` where that was the cause.
  Error error() const;

  sqlite3* get() const { return connection_.get(); }

 private:
  std::string path_;
  std::string where_;  // the setting with the user's own SQL; may be empty
  std::string doing_;  // "cannot read table 'measurements'"
  Nanoseconds round_trip_;
  StopFlag stop_;
  std::unique_ptr<sqlite3, CloseConnection> connection_;
};

/// The text in column `at` of the current row; gone with the next step. The
/// value is TEXT or BLOB; TEXT of a database in UTF-16 is converted, for which
/// there may be no memory: Error(out_of_memory).
std::string_view text_at(sqlite3_stmt* row, int at, bool utf8 = true);

/// A name as an SQL identifier: "it's" -> "\"it's\"".
std::string identifier(std::string_view name);

}  // namespace penstock::sqlite
