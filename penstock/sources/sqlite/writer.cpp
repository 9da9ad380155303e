#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "penstock/sources/sqlite/connection.h"
#include "penstock/sources/sqlite/sqlite.h"

namespace penstock::sqlite {
namespace {

std::string declared(const SourceSpec& spec, const NewColumn& column) {
  if (!column.declared.empty()) return column.declared;
  switch (column.type.kind) {
    case ColumnKind::boolean:
      return "BOOLEAN";
    case ColumnKind::number:
      if (column.type == ColumnType::int64) return "INTEGER";
      if (column.type == ColumnType::float64) return "REAL";
      break;
    case ColumnKind::utf8:
      return "TEXT";
    default:
      break;
  }
  refuse_table(spec, spec.path, "sqlite.type",
               "column '" + column.name + "' is a " +
                   std::string(name_of(column.type)) +
                   ", which SQLite cannot hold",
               "write the column as text");
}

/// Removes a file that was made here, unless told that it may stay.
class NewFile {
 public:
  explicit NewFile(const std::string& path) {
    std::error_code unknown;
    auto status = std::filesystem::status(path, unknown);
    if (status.type() != std::filesystem::file_type::not_found) return;
    journal_ = path + "-journal";
    path_ = path;
  }
  ~NewFile() {
    if (path_.empty()) return;
    ::unlink(path_.c_str());
    ::unlink(journal_.c_str());  // SQLite leaves it where a write failed
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_, journal_;  // there may be no memory for them at the end
};

/// A transaction that rolls back what is not committed.
class Transaction {
 public:
  explicit Transaction(Connection& connection) : connection_(connection) {
    connection_.execute("BEGIN IMMEDIATE");
  }
  ~Transaction() {
    if (committed_) return;
    // After a failed write, on a full disk for example, SQLite rolls back at
    // the next read: then the journal is removed too.
    for (const char* sql : {"ROLLBACK", "SELECT count(*) FROM sqlite_master"})
      sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    connection_.execute("COMMIT");
    committed_ = true;
  }

 private:
  Connection& connection_;
  bool committed_ = false;
};

/// Everything happens in one transaction: destroyed without finish(), it leaves
/// what was there before.
class SqliteWriter : public TableWriter {
 public:
  SqliteWriter(const SourceSpec& spec, const std::vector<NewColumn>& columns,
               bool replace);
  void write(const Block& block) override;
  void finish() override;

 private:
  void make_room(const SourceSpec& spec, bool replace);
  void bind(const Column& column, std::int64_t row, int parameter);

  std::vector<NewColumn> columns_;
  NewFile file_;
  Connection connection_;
  Transaction transaction_;
  Statement insert_;
};

SqliteWriter::SqliteWriter(const SourceSpec& spec,
                           const std::vector<NewColumn>& columns, bool replace)
    : columns_(columns),
      file_(spec.path),
      connection_(without_delay(spec), Connection::Open::to_write),
      transaction_(connection_) {
  std::string create = "CREATE TABLE " + identifier(spec.table) + " (";
  std::string insert = "INSERT INTO " + identifier(spec.table) + " VALUES (";
  for (const NewColumn& column : columns) {
    bool first = &column == columns.data();
    create += (first ? "" : ", ") + identifier(column.name) + " " +
              declared(spec, column);
    if (column.primary_key) create += " PRIMARY KEY NOT NULL";
    insert += first ? "?" : ",?";
  }
  make_room(spec, replace);
  connection_.execute(create + ")");
  insert_ = connection_.prepare(insert + ")");
}

void SqliteWriter::make_room(const SourceSpec& spec, bool replace) {
  Statement statement = connection_.prepare(
      "SELECT type FROM sqlite_master WHERE name = ?1 COLLATE NOCASE");
  sqlite3_bind_text64(statement.get(), 1, spec.table.data(), spec.table.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
  if (!connection_.send(statement.get())) return;
  std::string type(text_at(statement.get(), 0, false));
  if (type != "table")
    refuse_table(spec, spec.path, "source.table_exists",
                 "the name is used by another object (" + type + ")",
                 "choose another name");
  if (!replace)
    refuse_table(spec, spec.path, "source.table_exists", "the table exists",
                 "choose another name, or replace the table (--replace)");
  statement.reset();  // a table that is being read cannot be dropped
  connection_.execute("DROP TABLE " + identifier(spec.table));
}

void SqliteWriter::bind(const Column& column, std::int64_t row, int parameter) {
  sqlite3_stmt* statement = insert_.get();
  if (!column.valid(row)) {
    sqlite3_bind_null(statement, parameter);
    return;
  }
  switch (column.type.kind) {
    case ColumnKind::boolean:
      sqlite3_bind_int(statement, parameter, column.boolean(row));
      break;
    case ColumnKind::number:
      if (column.type == ColumnType::int64) {
        sqlite3_bind_int64(statement, parameter, column.int64(row));
        break;
      }
      PENSTOCK_ASSERT(!std::isnan(column.float64(row)),
                      "SQLite would turn a NaN into NULL");
      sqlite3_bind_double(statement, parameter, column.float64(row));
      break;
    default: {
      std::string_view text = column.text(row);
      if (text.empty()) text = "";  // no null pointer, which would mean NULL
      sqlite3_bind_text64(statement, parameter, text.data(), text.size(),
                          SQLITE_STATIC, SQLITE_UTF8);
    }
  }
}

void SqliteWriter::write(const Block& block) {
  PENSTOCK_ASSERT(insert_ != nullptr, "the table is not finished");
  check_block(block, columns_);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    for (std::size_t c = 0; c < columns_.size(); ++c)
      bind(block.columns[c], row, static_cast<int>(c + 1));
    connection_.send(insert_.get());
    sqlite3_reset(insert_.get());
  }
}

void SqliteWriter::finish() {
  PENSTOCK_ASSERT(insert_ != nullptr, "a table is finished once");
  insert_.reset();
  transaction_.commit();
  file_.keep();
}

}  // namespace

std::unique_ptr<TableWriter> make_table(const SourceSpec& spec,
                                        const std::vector<NewColumn>& columns,
                                        bool replace) {
  if (spec.table.empty())
    refuse_table(spec, spec.path, "source.no_table", "the URI names no table",
                 "write the table after the path: sqlite:PATH#table");
  PENSTOCK_ASSERT(!columns.empty(), "a table has at least one column");
  return std::make_unique<SqliteWriter>(spec, columns, replace);
}

}  // namespace penstock::sqlite
