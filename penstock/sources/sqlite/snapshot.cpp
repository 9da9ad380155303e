#include <algorithm>
#include <filesystem>

#include "penstock/sources/sqlite/reader.h"

namespace penstock::sqlite {
namespace {

/// Reading this much takes as long as some hundred connections.
constexpr std::uintmax_t kPartBytes = 8 << 20;
/// So that readers end at about the same time, however rows are spread.
constexpr int kPartsPerReader = 4;
constexpr int kTries = 5;

int parts_worth(const OpenTable& opened, int readers) {
  if (readers < 2 || opened.table.rowid.empty()) return 1;
  std::error_code unknown;
  std::uintmax_t bytes = std::filesystem::file_size(opened.spec.path, unknown);
  if (unknown) return 1;
  return static_cast<int>(std::clamp<std::uintmax_t>(
      bytes / kPartBytes, 1, static_cast<unsigned>(kPartsPerReader * readers)));
}

/// A number that changes when another connection has written since this one
/// last read it (https://sqlite.org/pragma.html#pragma_data_version).
std::int64_t data_version(Connection& connection) {
  return connection.number("PRAGMA data_version");
}

// SQLite cannot export a snapshot to another connection. So several connections
// begin their transactions one after the other, while one more watches: if
// data_version is the same before and after, no commit fell in between, and all
// of them see the same. After five tries one connection serves all partitions,
// in turn.
std::vector<std::shared_ptr<Snapshot>> snapshots_of(
    const OpenTable& opened, int parts, std::unique_ptr<Connection> spare) {
  std::vector<std::shared_ptr<Snapshot>> snapshots;
  for (int i = 0; i < parts; ++i)
    snapshots.push_back(std::make_shared<Snapshot>(
        spare != nullptr ? std::move(spare) : opened.connect()));
  if (parts > 1) {
    const std::unique_ptr<Connection> watch = opened.connect();
    for (int i = 0; i < kTries; ++i) {
      std::int64_t before = data_version(*watch);
      for (auto& snapshot : snapshots) snapshot->take();
      if (data_version(*watch) == before) return snapshots;
    }
    snapshots.resize(1);
  }
  snapshots[0]->take();
  return snapshots;
}

/// Cuts `all` into ranges of equal length. Differences are taken without sign:
/// row numbers may be as far apart as 64 bits allow. The span can be 2^64 - 1,
/// so `length` is computed as span / parts + 1: it never becomes 2^64, and no
/// range is empty.
std::vector<RowRange> cut(RowRange all, int parts) {
  auto start = static_cast<std::uint64_t>(all.first);
  std::uint64_t span = static_cast<std::uint64_t>(all.last) - start;
  std::uint64_t length = span / static_cast<unsigned>(parts) + 1;
  std::vector<RowRange> ranges;
  for (std::uint64_t from = 0;; from += length) {
    bool last = span - from < length;
    ranges.push_back(
        {static_cast<std::int64_t>(start + from),
         last ? all.last
              : static_cast<std::int64_t>(start + from + length - 1)});
    if (last) return ranges;
  }
}

}  // namespace

void Snapshot::take() {
  Lock lock(mutex);
  if (sqlite3_get_autocommit(connection->get()) == 0)
    connection->execute("COMMIT");
  connection->execute("BEGIN");
  // A transaction sees the database as of its first read.
  connection->execute("SELECT 1 FROM sqlite_master LIMIT 1");
}

std::vector<Partition> parts_of(const OpenTable& opened, int readers,
                                std::unique_ptr<Connection> spare) {
  int parts = parts_worth(opened, readers);
  auto snapshots = snapshots_of(opened, parts, std::move(spare));
  if (parts == 1)
    return {{"all rows", 0,
             std::make_shared<Part>(Part{snapshots[0], std::nullopt})}};
  RowRange all;
  {
    Lock lock(snapshots[0]->mutex);
    Connection& connection = *snapshots[0]->connection;
    // Each by itself is found without a walk over the table.
    const std::string& rowid = opened.table.rowid;
    std::string from = "(" + rowid + ") FROM " + opened.table.from;
    all.first = connection.number("SELECT min" + from);
    all.last = connection.number("SELECT max" + from);
  }
  std::vector<Partition> partitions;
  for (const RowRange& range : cut(all, parts)) {
    std::size_t at = partitions.size();
    partitions.push_back({"rows " + std::to_string(range.first) + ".." +
                              std::to_string(range.last),
                          static_cast<std::int64_t>(at),
                          std::make_shared<Part>(
                              Part{snapshots[at % snapshots.size()], range})});
  }
  return partitions;
}

}  // namespace penstock::sqlite
