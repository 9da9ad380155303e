#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/sources/key_lookup.h"
#include "penstock/sources/sqlite/rows.h"

namespace penstock::sqlite {

/// A table that was found and checked. Immutable: shared by the source and
/// its readers.
struct OpenTable {
  SourceSpec spec;  ///< with the table's name filled in
  Table table;
  RowFormat format;
  StopFlag stop = nullptr;

  std::unique_ptr<Connection> connect() const {
    return std::make_unique<Connection>(spec, Connection::Open::to_read, stop);
  }
  /// `format.columns()` of the rows for which the conditions hold.
  std::string select_where(const std::string& condition) const;
};

/// A connection inside a read transaction: what it shows does not change. Two
/// scans of one snapshot run one after the other.
struct Snapshot {
  explicit Snapshot(std::unique_ptr<Connection> of)
      : connection(std::move(of)) {}
  /// From here on it shows what is there now.
  void take();

  Mutex mutex;
  const std::unique_ptr<Connection> connection PENSTOCK_GUARDED_BY(mutex);
};

/// The rows of a table from one row number to another, both included.
struct RowRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

/// A partition of a scan: what Partition::snapshot of this source points to.
struct Part {
  std::shared_ptr<Snapshot> snapshot;
  std::optional<RowRange> rows;  ///< none: all
};

/// One snapshot of the table, in partitions. A large table with row numbers is
/// cut by them, each partition with a connection of its own: they all show the
/// same, because no other connection wrote between the first of their
/// transactions and the last. Where others write all the time, one connection
/// serves all partitions. `spare` is one of them where it is not null.
std::vector<Partition> parts_of(const OpenTable& opened, int readers,
                                std::unique_ptr<Connection> spare);

/// Scans on the snapshot's connection; reads by keys on one of its own, which
/// it opens with the first read.
class SqliteReader : public Reader {
 public:
  explicit SqliteReader(std::shared_ptr<const OpenTable> opened)
      : opened_(std::move(opened)) {}

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override;
  void read(const ReadRequest& request, Block& out) override;

 private:
  void fetch(const KeyList& keys, std::size_t begin, std::size_t end);
  sqlite3_stmt* statement_for(std::size_t keys);

  std::shared_ptr<const OpenTable> opened_;
  std::optional<Connection> connection_;
  std::map<std::size_t, Statement> statements_;  // by number of keys

  // Of the read that goes on.
  KeyLookup asked_;
  std::vector<std::int64_t> row_of_;  // by group: its row in arrived_, or -1
  KeyList arrived_keys_;              // in the order of the result
  Block arrived_;
};

}  // namespace penstock::sqlite
