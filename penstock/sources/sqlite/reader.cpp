#include "penstock/sources/sqlite/reader.h"

#include <algorithm>
#include <bit>

#include "penstock/sources/block_writer.h"
#include "penstock/sources/condition.h"

namespace penstock::sqlite {
namespace {

/// The default limit of SQLite on parameters.
constexpr std::size_t kMostParameters = 32766;

struct Reset {
  void operator()(sqlite3_stmt* statement) const { sqlite3_reset(statement); }
};
/// Ends the use of a kept statement, so that it holds no lock.
using InUse = std::unique_ptr<sqlite3_stmt, Reset>;

void bind(sqlite3_stmt* statement, int parameter, const KeyList& keys,
          std::int64_t at) {
  if (keys.type() == ColumnType::int64) {
    sqlite3_bind_int64(statement, parameter, keys.integer(at));
    return;
  }
  std::string_view key = keys.bytes(at);
  sqlite3_bind_text64(statement, parameter, key.data(), key.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
}

}  // namespace

std::string OpenTable::select_where(const std::string& condition) const {
  std::string all = condition;
  if (!spec.where.empty())
    all += (all.empty() ? "" : " AND ") + in_parentheses(spec.where);
  return format.select() + (all.empty() ? "" : " WHERE " + all);
}

void SqliteReader::scan(const Partition& partition, BlockLimit limit,
                        const BlockSink& sink) {
  auto& part = *static_cast<Part*>(partition.snapshot.get());
  Lock lock(part.snapshot->mutex);
  Connection& connection = part.snapshot->connection;
  const RowFormat& format = opened_->format;
  std::string condition;
  if (part.rows) condition = opened_->table.rowid + " BETWEEN ? AND ?";
  Statement statement = connection.prepare(opened_->select_where(condition));
  if (part.rows) {
    sqlite3_bind_int64(statement.get(), 1, part.rows->first);
    sqlite3_bind_int64(statement.get(), 2, part.rows->last);
  }
  BlockWriter writer(format.key_type(), format.types(), limit, sink,
                     opened_->stop);
  std::int64_t number = 0;
  for (bool more = connection.send(statement.get()); more;
       more = connection.next(statement.get())) {
    if (!writer.make_room(format.bytes_of(statement.get()))) return;
    format.append(statement.get(), number++, writer.keys, writer.block);
  }
  writer.finish();
}

/// One statement for each power of two: the rest of its parameters repeats
/// the last key.
sqlite3_stmt* SqliteReader::statement_for(std::size_t parameters) {
  Statement& statement = statements_[parameters];
  if (statement == nullptr) {
    std::string condition = opened_->format.key_identifier() + " IN (?";
    for (std::size_t i = 1; i < parameters; ++i) condition += ",?";
    statement = connection_->prepare(opened_->select_where(condition + ")"));
  }
  return statement.get();
}

/// Sends one statement for the groups begin..end and takes its rows.
void SqliteReader::fetch(const KeyList& keys, std::size_t begin,
                         std::size_t end) {
  std::size_t parameters =
      std::min(std::bit_ceil(end - begin), kMostParameters);
  InUse statement(statement_for(parameters));
  for (std::size_t i = 0; i < parameters; ++i)
    bind(statement.get(), static_cast<int>(i + 1), keys,
         asked_.position(std::min(begin + i, end - 1)));
  for (bool more = connection_->send(statement.get()); more;
       more = connection_->next(statement.get())) {
    std::int64_t row = arrived_.rows;
    opened_->format.append(statement.get(), row, arrived_keys_, arrived_);
    // A key column that ignores case matches more keys than were requested.
    auto found = keys.type() == ColumnType::int64
                     ? asked_.find(arrived_keys_.integer(row))
                     : asked_.find(arrived_keys_.bytes(row));
    if (!found) continue;
    if (row_of_[*found] >= 0)
      throw Error(ErrorKind::source,
                  {.code = "source.key_twice",
                   .what = "cannot read the row with key " +
                           keys.shown(asked_.position(*found)) + " of table '" +
                           opened_->spec.table + "'",
                   .where = opened_->spec.path,
                   .why = "two rows have this key",
                   .next = "make the key unique, or choose another one"});
    row_of_[*found] = row;
  }
}

void SqliteReader::read(const ReadRequest& request, Block& out) {
  const RowFormat& format = opened_->format;
  PENSTOCK_ASSERT(request.keys != nullptr && format.has_key(),
                  "rows of a table are read by their keys");
  const KeyList& keys = *request.keys;
  if (!format.fits(arrived_)) arrived_ = format.empty_block();
  arrived_.clear();
  arrived_keys_ = KeyList(format.key_type());
  if (!format.fits(out)) out = format.empty_block();
  out.clear();
  if (keys.size() == 0) return;
  PENSTOCK_ASSERT(keys.type() == format.key_type(),
                  "keys are of the type that the key column has");
  if (!connection_)
    connection_.emplace(opened_->spec, Connection::Open::to_read,
                        opened_->stop);

  // By ascending key, so that pages are visited in their order.
  asked_.assign(keys);
  row_of_.assign(asked_.groups(), -1);
  for (std::size_t begin = 0; begin < asked_.groups(); begin += kMostParameters)
    fetch(keys, begin, std::min(begin + kMostParameters, asked_.groups()));

  for (std::int64_t at = 0; at < keys.size(); ++at) {
    std::int64_t row = row_of_[asked_.group_of(at)];
    if (row < 0 && request.gone == nullptr)
      throw Error(
          ErrorKind::source,
          {.code = "source.row_gone",
           .what = "cannot read the row with key " + keys.shown(at) +
                   " of table '" + opened_->spec.table + "'",
           .where = opened_->spec.path,
           .why = "it was deleted, or source.where no longer holds for it",
           .next = "the table has changed: start the run again"});
    if (row < 0) {
      request.gone->push_back(at);
      for (Column& column : out.columns) column.append_null();
      ++out.rows;
      continue;
    }
    for (std::size_t c = 0; c < out.columns.size(); ++c)
      out.columns[c].append_from(arrived_.columns[c], row);
    for (const RowProblem& problem : arrived_.problems)
      if (problem.row == row)
        out.problems.push_back({out.rows, problem.column, problem.why});
    ++out.rows;
  }
}

}  // namespace penstock::sqlite
