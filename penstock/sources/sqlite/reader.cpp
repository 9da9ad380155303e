#include "penstock/sources/sqlite/reader.h"

#include <algorithm>
#include <bit>

#include "penstock/sources/block_writer.h"
#include "penstock/sources/condition.h"
#include "penstock/sources/key_parts.h"

namespace penstock::sqlite {
namespace {

/// The default limit of SQLite on parameters.
constexpr std::size_t kMostParameters = 32766;

struct Reset {
  void operator()(sqlite3_stmt* statement) const { sqlite3_reset(statement); }
};
/// Ends the use of a kept statement, so that it holds no lock.
using InUse = std::unique_ptr<sqlite3_stmt, Reset>;

void bind_text(sqlite3_stmt* statement, int parameter, std::string_view text,
               sqlite3_destructor_type lives) {
  sqlite3_bind_text64(statement, parameter, text.data(), text.size(), lives,
                      SQLITE_UTF8);
}

/// Binds the key at `at` to the parameters from `parameter` on, one for each
/// of its columns.
void bind(sqlite3_stmt* statement, int parameter, const RowFormat& format,
          const KeyList& keys, std::int64_t at) {
  const std::size_t columns = format.key_names().size();
  if (keys.type() == ColumnType::int64) {
    sqlite3_bind_int64(statement, parameter, keys.integer(at));
  } else if (columns == 1) {
    bind_text(statement, parameter, keys.bytes(at), SQLITE_STATIC);
  } else {
    KeyParts parts(keys.bytes(at));
    for (std::size_t c = 0; c < columns; ++c, ++parameter)
      if (format.key_part(c) == ColumnType::int64)
        sqlite3_bind_int64(statement, parameter, parts.integer());
      else
        bind_text(statement, parameter, parts.text(), SQLITE_TRANSIENT);
  }
}

/// "WITH k(k0,k1) AS (VALUES(?,?),(?,?)) SELECT ... FROM k CROSS JOIN t ON a=k0
/// AND b=k1": the outer loop is over the keys, and an index is used whole,
/// which (a,b) IN (VALUES...) does not do.
std::string select_by_parts(const OpenTable& opened, std::size_t keys) {
  const std::vector<std::string>& columns = opened.format.key_names();
  std::string names, one, on;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::string name = "penstock_" + std::to_string(c);
    one += c == 0 ? "?" : ",?";
    on += (c == 0 ? "" : " AND ") + columns[c] + " = " + name;
    names += (c == 0 ? "" : ",") + std::move(name);
  }
  std::string all = "WITH penstock_keys(" + names + ") AS (VALUES(" + one + ")";
  for (std::size_t i = 1; i < keys; ++i) all += ",(" + one + ")";
  all += ") " + opened.format.columns() + " FROM penstock_keys CROSS JOIN " +
         opened.table.from + " ON " + on;
  if (!opened.spec.where.empty())
    all += " WHERE " + in_parentheses(opened.spec.where);
  return all;
}

std::string select_by_key(const OpenTable& opened, std::size_t keys) {
  const std::vector<std::string>& columns = opened.format.key_names();
  if (columns.size() > 1) return select_by_parts(opened, keys);
  std::string condition = columns[0] + " IN (?";
  for (std::size_t i = 1; i < keys; ++i) condition += ",?";
  return opened.select_where(condition + ")");
}

}  // namespace

std::string OpenTable::select_where(const std::string& condition) const {
  std::string all = condition;
  if (!spec.where.empty())
    all += (all.empty() ? "" : " AND ") + in_parentheses(spec.where);
  return format.columns() + " FROM " + table.from +
         (all.empty() ? "" : " WHERE " + all);
}

void SqliteReader::scan(const Partition& partition, BlockLimit limit,
                        const BlockSink& sink) {
  auto& part = *static_cast<Part*>(partition.snapshot.get());
  Lock lock(part.snapshot->mutex);
  Connection& connection = *part.snapshot->connection;
  const RowFormat& format = opened_->format;
  std::string condition;
  if (part.rows) condition = opened_->table.rowid + " BETWEEN ? AND ?";
  Statement statement = connection.prepare(opened_->select_where(condition));
  if (part.rows) {
    sqlite3_bind_int64(statement.get(), 1, part.rows->first);
    sqlite3_bind_int64(statement.get(), 2, part.rows->last);
  }
  BlockWriter writer(format.key_type(), block_columns(format.types()), limit,
                     sink, opened_->stop);
  std::int64_t number = 0;
  for (bool more = connection.send(statement.get()); more;
       more = connection.next(statement.get())) {
    if (!writer.make_room(format.bytes_of(statement.get()))) return;
    format.append(statement.get(), number++, writer.keys, writer.block);
  }
  writer.finish();
}

/// One statement for each power of two: the rest of its keys is NULL. So there
/// are at most 16 statements for requests of any size, at the price of up to as
/// many NULLs as keys. NULL equals nothing, so such a parameter finds no row.
sqlite3_stmt* SqliteReader::statement_for(std::size_t keys) {
  Statement& statement = statements_[keys];
  if (statement == nullptr)
    statement = connection_->prepare(select_by_key(*opened_, keys));
  return statement.get();
}

/// Sends one statement for the groups begin..end and takes its rows.
void SqliteReader::fetch(const KeyList& keys, std::size_t begin,
                         std::size_t end) {
  const RowFormat& format = opened_->format;
  const std::size_t columns = format.key_names().size();
  std::size_t most =
      std::min(std::bit_ceil(end - begin), kMostParameters / columns);
  InUse statement(statement_for(most));
  for (std::size_t i = 0; i < end - begin; ++i)
    bind(statement.get(), static_cast<int>(i * columns + 1), format, keys,
         asked_.position(begin + i));
  // Rows would come twice for a key of several columns that is there twice.
  for (std::size_t i = (end - begin) * columns; i < most * columns; ++i)
    sqlite3_bind_null(statement.get(), static_cast<int>(i + 1));
  for (bool more = connection_->send(statement.get()); more;
       more = connection_->next(statement.get())) {
    std::int64_t row = arrived_.rows;
    format.append(statement.get(), row, arrived_keys_, arrived_);
    // A key column that ignores case matches more keys than were requested.
    auto found = keys.type() == ColumnType::int64
                     ? asked_.find(arrived_keys_.integer(row))
                     : asked_.find(arrived_keys_.bytes(row));
    if (!found) continue;
    if (row_of_[*found] >= 0)
      throw Error(ErrorKind::source,
                  {.code = "source.key_twice",
                   .what = "cannot read the row with key " +
                           keys.shown(asked_.position(*found)) + " of " +
                           opened_->table.shown,
                   .where = opened_->spec.path,
                   .why = "two rows have this key",
                   .next = "make the key unique, or choose another key"});
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
  const std::size_t most = kMostParameters / format.key_names().size();
  for (std::size_t begin = 0; begin < asked_.groups(); begin += most)
    fetch(keys, begin, std::min(begin + most, asked_.groups()));

  for (std::int64_t at = 0; at < keys.size(); ++at) {
    std::int64_t row = row_of_[asked_.group_of(at)];
    if (row < 0 && request.gone == nullptr)
      throw Error(
          ErrorKind::source,
          {.code = "source.row_gone",
           .what = "cannot read the row with key " + keys.shown(at) + " of " +
                   opened_->table.shown,
           .where = opened_->spec.path,
           .why = "the row was deleted, or no longer meets source.where",
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
