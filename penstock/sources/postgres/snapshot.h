#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/sources/postgres/rows.h"

namespace penstock::postgres {

/// A table that was found and checked. Shared by the source and its readers.
struct OpenTable {
  SourceSpec spec;  ///< with the table's name filled in
  Table table;
  RowFormat format;
  StopFlag stop;
  /// The moment to which the order of its rows belongs; empty: to none.
  std::string snapshot = {};
  /// Who asks, and every setting of the session that is not the server's
  /// default: which table a name means, and how its values are shown, may
  /// depend on them.
  std::string session = {};

  OpenTable(SourceSpec found, Table of, RowFormat rows, StopFlag ends)
      : spec(std::move(found)),
        table(std::move(of)),
        format(std::move(rows)),
        stop(ends) {}

  /// A connection that was given back, or a new one. Thread-safe.
  Connection connect();
  /// Keeps a connection for the next reader that needs one; a second one is
  /// closed.
  void give(Connection connection);

  /// `format.select()` and the conditions that apply.
  std::string select_where(const std::string& condition) const;

 private:
  Mutex mutex_;
  std::optional<Connection> spare_ PENSTOCK_GUARDED_BY(mutex_);
};

/// One view of the table for all partitions of a scan: a transaction that stays
/// open, and the name by which other connections join it.
///
/// While it exists, no session can change the table's columns, TRUNCATE it or
/// drop it; rows can be inserted, updated and deleted. snapshot.cpp explains
/// how.
class Snapshot {
 public:
  /// Cuts the table into at most `most` partitions of about the same size.
  /// Waits while another program holds the table; throws `postgres.changed`
  /// when its columns are not those that it had when it was opened.
  Snapshot(OpenTable& opened, int most);

  std::size_t parts() const { return conditions_.size(); }
  /// "all rows", "pages 512..1023".
  const std::string& range(std::size_t part) const { return ranges_[part]; }
  /// The SQL condition that selects a part; may be empty.
  const std::string& condition(std::size_t part) const {
    return conditions_[part];
  }
  /// The beginning of a transaction that sees the same.
  const std::string& join() const { return join_; }
  /// The snapshot's own connection while it is free; else null. Thread-safe.
  /// `leave` it when done.
  Connection* enter();
  /// The same, but waits until it is free.
  Connection& wait_to_enter(StopFlag stop);
  void leave();

 private:
  /// What `begin` finds out about the table, and whether nothing that it locked
  /// had been replaced before.
  struct Begun {
    std::int64_t pages = 0;
    std::int64_t bytes = 0;
    std::string name;
    bool whole = false;
  };
  Begun begin(const OpenTable& opened);
  Result lock_and_describe(const OpenTable& opened);
  void cut(std::int64_t pages, std::int64_t bytes, std::int64_t most);

  std::vector<std::string> conditions_;
  std::vector<std::string> ranges_;
  std::string lock_;  // empty where it cannot be locked by name
  std::string join_;
  Connection connection_;  // belongs to whoever entered
  Mutex mutex_;
  Condition left_;
  bool in_use_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::postgres
