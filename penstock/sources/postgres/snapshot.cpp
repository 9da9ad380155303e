#include "penstock/sources/postgres/snapshot.h"

#include <algorithm>
#include <charconv>
#include <chrono>

// Why the table is locked before the snapshot is taken.
//
// A snapshot does not protect from everything. TRUNCATE and an ALTER TABLE that
// rewrites the table put new files in place of the old ones, and a snapshot
// that was taken before they committed does not see the rows in them: it finds
// the table empty. And the columns of a statement are always the current ones,
// whatever its snapshot.
//
// So the table is locked first, then the snapshot is taken, then the types are
// compared with those that the table had when it was opened; and the
// transaction that has done so holds its lock until the last partition of the
// scan is read, also for the connections that join it. LOCK TABLE is the one
// statement that locks without taking a snapshot. It covers partitions and, for
// a view, the tables that the view reads.
//
// The mode is ACCESS SHARE, what every SELECT takes and pg_dump too. It
// conflicts only with ACCESS EXCLUSIVE, which TRUNCATE, DROP and ALTER ... TYPE
// take. SHARE mode would block every INSERT of a running system for as long as
// the scan takes, needs the privilege to write, and is refused by a standby.
//
// What cannot be locked by name (a materialized view, a foreign table, a table
// of which a role may read only some columns) and what `where` reads in
// addition is locked by the statement itself, which has taken its snapshot by
// then. Therefore everything that is locked is checked afterwards: if the
// snapshot knows it by another file or another name than it has now, or not at
// all, it was replaced in between, and the transaction begins again. A foreign
// table is protected only by its own server.

namespace penstock::postgres {
namespace {

constexpr int kTries = 5;
constexpr std::chrono::milliseconds kHearStop{100};
/// Relations that this transaction has locked and its snapshot shows otherwise
/// than they are. Functions see what is now, a query what the snapshot shows.
/// Below 16384 are the server's own.
constexpr const char* kReplaced =
    "SELECT FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE l.pid = "
    "pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384 AND "
    "(c.oid IS NULL OR c.relfilenode <> pg_relation_filenode(c.oid) OR "
    "quote_ident(n.nspname) || '.' || quote_ident(c.relname) <> (SELECT "
    "identity FROM pg_identify_object('pg_class'::regclass, l.relation, 0)))";

/// A partition should be worth a connection, which costs some milliseconds.
constexpr std::int64_t kSmallestPartBytes = 2 << 20;
/// Since this version the server goes straight to a range of pages.
constexpr int kHasPageRanges = 140000;

std::int64_t number_in(const Result& result, int column) {
  std::string_view text = text_in(result, 0, column);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string page(std::int64_t number) {
  return "'(" + std::to_string(number) + ",0)'";
}

}  // namespace

Connection OpenTable::connect() {
  {
    Lock lock(mutex_);
    if (spare_) {
      Connection taken = std::move(*spare_);
      spare_.reset();
      if (taken.alive()) return taken;
    }
  }
  return Connection(spec, Connection::Use::to_read, stop);
}

void OpenTable::give(Connection connection) {
  Lock lock(mutex_);
  spare_ = std::move(connection);
}

std::string OpenTable::select_where(const std::string& condition) const {
  std::string all = condition;
  // On a line of its own: the condition may end in a comment.
  if (!spec.where.empty())
    all += (all.empty() ? "(" : " AND (") + spec.where + "\n)";
  return format.select() + (all.empty() ? "" : " WHERE " + all);
}

Snapshot::Snapshot(OpenTable& opened, int most)
    : connection_(opened.connect()) {
  if (opened.table.can_be_locked())
    lock_ = "LOCK TABLE " + opened.table.identifier + " IN ACCESS SHARE MODE";
  Begun begun = begin(opened);
  for (int tries = 1; !begun.whole && tries < kTries; ++tries) {
    connection_.execute("ROLLBACK");
    begun = begin(opened);
  }
  if (!begun.whole)
    throw Error(ErrorKind::source,
                {.code = "postgres.conflict",
                 .what = connection_.about().doing,
                 .where = connection_.place(),
                 .why = "another program replaced the table or all its rows, " +
                        std::to_string(kTries) + " times in a row",
                 .next = "try again when that program is done"});
  // Locked before it is joined: so the lock is held even if the first
  // connection ends a moment later. A session that waits to change the table
  // waits for the first connection, and any later one would wait for both:
  // hence NOWAIT.
  join_ = connection_.begin() + "; " +
          (lock_.empty() ? "" : lock_ + " NOWAIT; ") +
          "SET TRANSACTION SNAPSHOT '" + begun.name + "'";
  // A pooler may have no more sessions than this one, and let others wait for
  // it.
  cut(begun.pages, begun.bytes, connection_.pooled() ? 1 : most);
}

Result Snapshot::lock_and_describe(const OpenTable& opened) {
  std::string describe = opened.select_where("") + " LIMIT 0";
  if (!lock_.empty()) {
    try {
      return connection_.execute(connection_.begin() + "; " + lock_ + "; " +
                                 describe);
    } catch (const Error& error) {
      // A privilege that LOCK TABLE needs and SELECT does not, or a view in an
      // old version. SELECT itself reports what is wrong with the table.
      const std::string& code = error.parts().code;
      if (code != "postgres.permission" && code != "postgres.failed") throw;
    }
    connection_.execute("ROLLBACK");
    lock_.clear();
  }
  return connection_.execute(connection_.begin() + "; " + describe);
}

Snapshot::Begun Snapshot::begin(const OpenTable& opened) {
  opened.format.check_types(lock_and_describe(opened));
  std::string size = "0, 0, 1";
  if (opened.table.has_pages() && connection_.version() >= kHasPageRanges)
    size = "pg_relation_size(" + opened.table.oid + "), pg_table_size(" +
           opened.table.oid + "), current_setting('block_size')";
  Result begun = connection_.execute(
      "SELECT " + size + ", pg_export_snapshot(), EXISTS (" + kReplaced + ")");
  return {.pages = number_in(begun, 0) / number_in(begun, 2),
          .bytes = number_in(begun, 1),
          .name = std::string(text_in(begun, 0, 3)),
          .whole = text_in(begun, 0, 4) == "f"};
}

// The last partition has no end, because the table may have grown since its
// pages were counted. A row's ctid is (page, number in the page). Within one
// snapshot rows do not move: an UPDATE writes a new version elsewhere, which
// the snapshot does not see. So ranges of pages cover each visible row just
// once. What would move rows (VACUUM FULL, CLUSTER) needs the lock that the
// snapshot's transaction excludes.
void Snapshot::cut(std::int64_t pages, std::int64_t bytes, std::int64_t most) {
  std::int64_t parts = std::max<std::int64_t>(
      1, std::min({most, bytes / kSmallestPartBytes, pages}));
  if (parts == 1) {
    conditions_ = {""};
    ranges_ = {"all rows"};
    return;
  }
  for (std::int64_t part = 0; part < parts; ++part) {
    std::int64_t begin = part * pages / parts;
    std::int64_t end = (part + 1) * pages / parts;
    bool last = part + 1 == parts;
    std::string condition;
    if (part > 0) condition = "ctid >= " + page(begin);
    if (!last) condition += (part > 0 ? " AND ctid < " : "ctid < ") + page(end);
    conditions_.push_back(condition);
    ranges_.push_back("pages " + std::to_string(begin) + ".." +
                      (last ? "" : std::to_string(end - 1)));
  }
}

// `in_use_` says who may use connection_, which the mutex does not guard: it is
// handed from reader to reader by enter() and leave(), and a scan may take
// hours.
Connection* Snapshot::enter() {
  Lock lock(mutex_);
  if (in_use_) return nullptr;
  in_use_ = true;
  return &connection_;
}

Connection& Snapshot::wait_to_enter(StopFlag stop) {
  Lock lock(mutex_);
  while (in_use_) {
    end_if_stopped(stop);
    left_.wait_until(mutex_, std::chrono::steady_clock::now() + kHearStop);
  }
  in_use_ = true;
  return connection_;
}

void Snapshot::leave() {
  Lock lock(mutex_);
  in_use_ = false;
  left_.notify_one();
}

}  // namespace penstock::postgres
