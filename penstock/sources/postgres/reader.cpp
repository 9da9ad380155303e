#include "penstock/sources/postgres/reader.h"

#include <functional>

#include "penstock/sources/block_writer.h"
#include "penstock/sources/postgres/big_endian.h"

namespace penstock::postgres {
namespace {

constexpr const char* kReadByKeys = "penstock_read";

/// Whose connection a scan runs on, and how its transaction ends.
///
/// On the snapshot's own connection a savepoint stands before the statement,
/// because that transaction must outlive a scan that fails.
class Turn {
 public:
  /// On the snapshot's own connection.
  Turn(Snapshot& snapshot, Connection& entered)
      : snapshot_(snapshot), connection_(entered), joins_(false) {}
  /// On a connection that joins it.
  static Turn joining(Snapshot& snapshot, Connection& own) {
    return {snapshot, own, true};
  }
  ~Turn() {
    // A scan that was ended early may have been over on the server before.
    if (PQtransactionStatus(connection_.get()) == PQTRANS_INERROR)
      connection_.clean_up(joins() ? "ROLLBACK"
                                   : "ROLLBACK TO SAVEPOINT scan; RELEASE "
                                     "SAVEPOINT scan");
    if (!joins()) snapshot_.leave();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Connection& connection() { return connection_; }
  bool joins() const { return joins_; }
  /// All statements in one text, which costs one round trip.
  std::string around(const std::string& copy) const {
    return joins() ? snapshot_.join() + "; " + copy + "; COMMIT"
                   : "SAVEPOINT scan; " + copy + "; RELEASE SAVEPOINT scan";
  }

 private:
  Turn(Snapshot& snapshot, Connection& connection, bool joins)
      : snapshot_(snapshot), connection_(connection), joins_(joins) {}

  Snapshot& snapshot_;
  Connection& connection_;
  const bool joins_;
};

/// Joining a snapshot that has ended fails in one of these ways; a condition of
/// the user's may fail with the same state, but of something else.
bool is_snapshot_gone(const Error& error) {
  if (error.parts().why.find("snapshot") == std::string::npos) return false;
  for (const char* state : {"22023", "55000", "42704"})
    if (error.parts().why.ends_with("(SQLSTATE " + std::string(state) + ")"))
      return true;
  return false;
}

/// Null: another session waits to change the table, and blocks those that join
/// after it. The snapshot's own connection has its lock already.
std::unique_ptr<CopyOut> begin_copy(Turn& turn, const std::string& select) {
  try {
    return std::make_unique<CopyOut>(
        turn.connection(),
        turn.around("COPY (" + select + ") TO STDOUT (FORMAT binary)"));
  } catch (const Error& error) {
    if (!turn.joins()) throw;
    if (error.parts().code == "postgres.locked") return nullptr;
    if (!is_snapshot_gone(error)) throw;
    ErrorParts parts = error.parts();
    parts.code = "postgres.snapshot_gone";
    parts.next =
        "the connection that held the snapshot has ended (see the server's "
        "log), or source.uri names several servers and this is a different "
        "one: start again";
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace

Connection& PostgresReader::connection() {
  if (connection_ && !connection_->alive()) connection_.reset();
  if (!connection_) {
    connection_.emplace(opened_->connect());
    prepared_ = false;
  }
  return *connection_;
}

// The snapshot's connection is used by whoever comes first, the others join it
// by its name (SET TRANSACTION SNAPSHOT of an exported snapshot), which works
// while the exporting transaction is open. A reader that cannot lock the table
// at once waits for its turn on that first connection, whose lock is held
// already.
void PostgresReader::scan(const Partition& partition, BlockLimit limit,
                          const BlockSink& sink) {
  auto& snapshot = *static_cast<Snapshot*>(partition.snapshot.get());
  std::string select = opened_->select_where(
      snapshot.condition(static_cast<std::size_t>(partition.index)));
  auto scan_on = [&](Connection& entered) {
    Turn turn(snapshot, entered);
    copy(*begin_copy(turn, select), partition, limit, sink);
  };
  if (Connection* free = snapshot.enter()) return scan_on(*free);
  {
    Turn turn = Turn::joining(snapshot, connection());
    if (std::unique_ptr<CopyOut> copying = begin_copy(turn, select))
      return copy(*copying, partition, limit, sink);
  }
  scan_on(snapshot.wait_to_enter(opened_->stop));
}

void PostgresReader::copy(CopyOut& copy, const Partition& partition,
                          BlockLimit limit, const BlockSink& sink) {
  const RowFormat& format = opened_->format;
  CopyDecoder decoder(format.fields(), format.place());
  BlockWriter writer(format.key().type(), format.columns(), limit, sink,
                     opened_->stop);
  std::int64_t number = 0;
  while (std::optional<std::string_view> bytes = copy.next()) {
    decoder.feed(*bytes);
    while (decoder.next()) {
      // A block is handed on with the row after it, so that the last one may
      // be smaller.
      if (!writer.make_room(format.bytes_of(decoder.row()))) return;
      format.append(decoder.row(), ++number, partition.range, writer.keys,
                    writer.block);
    }
  }
  decoder.finish();
  writer.finish();
}

Error PostgresReader::row_error(const KeyList& keys, std::int64_t at,
                                std::string code, std::string why,
                                std::string next) const {
  return Error(ErrorKind::source,
               {.code = std::move(code),
                .what = "cannot read the row with key " + keys.shown(at) +
                        " of " + opened_->table.shown,
                .where = opened_->format.place(),
                .why = std::move(why),
                .next = std::move(next)});
}

void PostgresReader::take_fields(int row) {
  fields_.resize(opened_->format.fields());
  for (std::size_t at = 0; at < fields_.size(); ++at) {
    auto column = static_cast<int>(at);
    const PGresult* result = result_.get();
    fields_[at] = {};
    if (PQgetisnull(result, row, column) == 0)
      fields_[at] = {
          PQgetvalue(result, row, column),
          static_cast<std::size_t>(PQgetlength(result, row, column))};
  }
}

Result PostgresReader::rows_with(const std::vector<std::string>& keys) {
  const std::string condition = opened_->format.key().condition();
  Connection& session = connection();
  if (session.pooled())
    return session.run_in_transaction(opened_->select_where(condition), keys);
  if (!prepared_)
    session.prepare(kReadByKeys, opened_->select_where(condition));
  prepared_ = true;
  return session.run(kReadByKeys, keys);
}

void PostgresReader::fetch(const KeyList& keys) {
  const RowFormat& format = opened_->format;
  result_ = rows_with(format.key().parameters(keys, asked_));
  format.check_types(result_);
}

// A key names one row. Keys that were requested more than once are one group,
// and are asked for once; a second row of one group is an error, since each
// epoch might give another of them.
void PostgresReader::place_rows(const KeyList& keys) {
  const RowFormat& format = opened_->format;
  row_of_.assign(asked_.groups(), -1);
  for (int row = 0; row < PQntuples(result_.get()); ++row) {
    take_fields(row);
    format.check_key(fields_, row + 1, "the result");
    auto group = format.key().find(fields_, asked_);
    // A key column that ignores case matches more keys than were requested.
    if (!group) continue;
    if (row_of_[*group] >= 0)
      throw row_error(keys, asked_.position(*group), "source.key_twice",
                      "two rows have this key",
                      "make the key unique, or choose another key");
    row_of_[*group] = row;
  }
}

void PostgresReader::read(const ReadRequest& request, Block& out) {
  const RowFormat& format = opened_->format;
  PENSTOCK_ASSERT(request.keys != nullptr && !format.key().empty(),
                  "rows of a table are read by their keys");
  const KeyList& keys = *request.keys;
  if (!format.fits(out)) out = format.empty_block();
  out.clear();
  if (keys.size() == 0) return;
  PENSTOCK_ASSERT(keys.type() == format.key().type(),
                  "keys are of the type that the key column has");
  asked_.assign(keys);
  fetch(keys);
  place_rows(keys);
  KeyList found(format.key().type());
  for (std::int64_t at = 0; at < keys.size(); ++at) {
    int row = row_of_[asked_.group_of(at)];
    if (row < 0 && request.gone == nullptr)
      throw row_error(keys, at, "source.row_gone",
                      "the row was deleted, or no longer meets source.where",
                      "the table has changed: start the run again");
    if (row < 0) {
      request.gone->push_back(at);
      for (Column& column : out.columns) column.append_null();
      ++out.rows;
      continue;
    }
    take_fields(row);
    format.append(fields_, row + 1, "the result", found, out);
  }
  result_.reset();
}

}  // namespace penstock::postgres
