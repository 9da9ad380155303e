
#include <filesystem>

#include "penstock/base/file_stamp.h"
#include "penstock/sources/condition.h"
#include "penstock/sources/schema.h"
#include "penstock/sources/sqlite/query.h"
#include "penstock/sources/sqlite/reader.h"
#include "penstock/sources/sqlite/sqlite.h"
#include "penstock/sources/sqlite/storage_classes.h"

namespace penstock::sqlite {
namespace {

/// Up to this size counting all rows takes a few milliseconds, or no time.
constexpr std::int64_t kCountedBytes = 16 << 20, kCountedAtOnce = 256 << 10;
/// No row takes less room in a file.
constexpr std::int64_t kSmallestRowBytes = 6;

void check_where(Connection& connection, const SourceSpec& spec,
                 const Table& table) {
  if (spec.where.empty()) return;
  auto refuse = [&](std::string why, const std::string& unknown = "") {
    throw condition_error(spec, table.schema, std::move(why), unknown);
  };
  for (const std::string& clause :
       {in_parentheses(spec.where), bare(spec.where)}) {
    std::string sql = "SELECT 1 FROM " + table.from + " WHERE " + clause;
    sqlite3_stmt* prepared = nullptr;
    const char* rest = nullptr;
    int status =
        sqlite3_prepare_v2(connection.get(), sql.c_str(), -1, &prepared, &rest);
    Statement statement(prepared);
    if ((status & 0xff) == SQLITE_ERROR) {
      std::string says = sqlite3_errmsg(connection.get());
      constexpr std::string_view kUnknown = "no such column: ";
      refuse("SQLite reports: " + says,
             says.starts_with(kUnknown) ? says.substr(kUnknown.size()) : "");
    }
    if (status != SQLITE_OK) throw connection.error();
    if (*rest != '\0') refuse("there is more than one condition");
    if (sqlite3_bind_parameter_count(prepared) != 0)
      refuse("the condition has a parameter, but parameters get no values");
  }
}

/// The stamp of a file; null if none exists, or it is empty. The time of the
/// last status change is left out for a write-ahead log, which every reader
/// changes.
Json version_of(const std::string& path, bool log = false) {
  const std::optional<FileStamp> found = stamp_of(path);
  if (!found || found->bytes == 0) return nullptr;
  Json version(Json::Object{});
  version["bytes"] = found->bytes;
  version["changed_ns"] = found->modified_ns;
  if (!log) version["file_changed_ns"] = found->changed_ns;
  version["file"] = std::to_string(found->inode);
  return version;
}

// The version is of the file and of its write-ahead log, since a commit in WAL
// mode changes the latter alone until a checkpoint moves it.
SourceFacts facts_of(const OpenTable& opened) {
  const SourceSpec& spec = opened.spec;
  SourceFacts facts{
      .shown = (spec.query.empty() ? spec.table : "query") + " in " + spec.path,
      .schema = opened.table.schema,
      .types = opened.format.types(),
      .abilities = {.by_key = opened.format.has_key()},
      .key = opened.format.key_type(),
      .identity = opened.format.identity()};
  if (spec.query.empty()) facts.identity["where"] = spec.where;
  facts.identity["version"] = version_of(spec.path);
  // The latest commits may be only in there. SQLite follows links.
  std::error_code unknown;
  const std::filesystem::path file =
      std::filesystem::canonical(spec.path, unknown);
  facts.identity["wal"] =
      version_of((unknown ? spec.path : file.string()) + "-wal", true);
  return facts;
}

class SqliteSource : public Source {
 public:
  SqliteSource(OpenTable opened, std::unique_ptr<Connection> spare)
      : Source(facts_of(opened)),
        opened_(std::make_shared<OpenTable>(std::move(opened))) {
    give(std::move(spare));
  }

  RowCount count() const override;
  std::vector<Partition> partitions(int readers) override {
    return parts_of(*opened_, readers, take());
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<SqliteReader>(opened_);
  }

 private:
  RowCount count_by(Connection& connection, std::int64_t bytes) const;

  /// The connection that the table was opened with, for who needs the next one;
  /// null where it is in use. To open another takes as long as a hundred rows.
  std::unique_ptr<Connection> take() const {
    Lock lock(mutex_);
    return std::move(spare_);
  }
  void give(std::unique_ptr<Connection> connection) const {
    Lock lock(mutex_);
    if (connection != nullptr && connection->keeps_nothing())
      spare_ = std::move(connection);
  }

  std::shared_ptr<const OpenTable> opened_;
  mutable Mutex mutex_;
  mutable std::unique_ptr<Connection> spare_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Exact for a small file, and of a condition for one that is not large. Else
/// the span of the row numbers, where a file of that size can hold as many:
/// each end by itself is found without a walk over the table.
RowCount SqliteSource::count() const {
  const SourceSpec& spec = opened_->spec;
  if (opened_->table.view || !spec.query.empty()) return {};
  std::error_code unknown;
  auto bytes =
      static_cast<std::int64_t>(std::filesystem::file_size(spec.path, unknown));
  const bool spans = !opened_->table.rowid.empty() && spec.where.empty();
  if (unknown || (bytes > kCountedBytes && !spans)) return {};
  std::unique_ptr<Connection> connection = take();
  if (connection == nullptr) return count_by(*opened_->connect(), bytes);
  const RowCount rows = count_by(*connection, bytes);
  give(std::move(connection));
  return rows;
}

RowCount SqliteSource::count_by(Connection& connection,
                                std::int64_t bytes) const {
  const std::string& where = opened_->spec.where;
  const std::string& rowid = opened_->table.rowid;
  const std::string from = " FROM " + opened_->table.from;
  if (!rowid.empty() && where.empty() && bytes > kCountedAtOnce) {
    const std::int64_t rows =
        connection.number("SELECT (SELECT max(" + rowid + ")" + from +
                          ") - (SELECT min(" + rowid + ")" + from + ") + 1");
    if (rows >= 0 && rows <= bytes / kSmallestRowBytes) return {.rows = rows};
    if (bytes > kCountedBytes) return {};
  }
  std::string sql = "SELECT count(*)" + from;
  if (!where.empty()) sql += " WHERE " + in_parentheses(where);
  return {.rows = connection.number(sql), .exact = true};
}

}  // namespace

std::unique_ptr<Source> open_table(const SourceSpec& spec,
                                   const std::vector<ColumnRequest>& requests,
                                   SourceOptions options) {
  auto connection = std::make_unique<Connection>(
      spec, Connection::Open::to_read, options.stop);
  Table table = find_rows(*connection, spec);
  if (!spec.query.empty() && spec.key.empty() && options.keys)
    number_rows(*connection, spec, table);
  SourceSpec found = spec;
  found.table = table.name;
  check_where(*connection, found, table);
  RowFormat format(*connection, found, table, requests, options.keys);
  if (found.table != spec.table) connection.reset();  // it names none in errors
  return std::make_unique<SqliteSource>(
      OpenTable{std::move(found), std::move(table), std::move(format),
                options.stop},
      std::move(connection));
}

Schema read_table_schema(const SourceSpec& spec) {
  Connection connection(spec, Connection::Open::to_read);
  Table table = find_rows(connection, spec);
  SourceSpec found = spec;
  found.table = table.name;
  check_where(connection, found, table);
  look_at_storage_classes(connection, found, table);
  return std::move(table.schema);
}

}  // namespace penstock::sqlite
