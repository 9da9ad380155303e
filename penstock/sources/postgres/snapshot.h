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

  OpenTable(SourceSpec found, Table of, RowFormat rows, StopFlag ends)
      : spec(std::move(found)),
        table(std::move(of)),
        format(std::move(rows)),
        stop(ends) {}

  /// A connection that was given back, or a new one. Thread-safe.
  Connection connect();
  /// Keeps a connection for the next one who needs one; a second one is closed.
  void give(Connection connection);

  /// `format.select()` and the conditions that apply.
  std::string select_where(const std::string& condition) const;

 private:
  Mutex mutex_;
  std::optional<Connection> spare_ PENSTOCK_GUARDED_BY(mutex_);
};

/// One view of the table for all scans of a pass: a transaction that stays
/// open, and the name by which other connections join it.
class Snapshot {
 public:
  /// Cuts the table into at most `wish` parts of about the same size.
  Snapshot(OpenTable& opened, int wish);

  std::size_t parts() const { return conditions_.size(); }
  /// "all rows", "pages 512..1023".
  const std::string& range(std::size_t part) const { return ranges_[part]; }
  /// The SQL condition that selects a part; may be empty.
  const std::string& condition(std::size_t part) const {
    return conditions_[part];
  }
  /// What a transaction begins with to see the same.
  const std::string& join() const { return join_; }
  /// The snapshot's own connection, if nobody is using it; else null. Thread-
  /// safe. `leave` it when done.
  Connection* enter();
  void leave();

 private:
  void cut(std::int64_t pages, std::int64_t bytes, std::int64_t wish);

  std::vector<std::string> conditions_;
  std::vector<std::string> ranges_;
  std::string join_;
  Connection connection_;  // belongs to whoever entered
  Mutex mutex_;
  bool in_use_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::postgres
