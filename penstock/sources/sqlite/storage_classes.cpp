#include "penstock/sources/sqlite/storage_classes.h"

#include "penstock/sources/condition.h"

namespace penstock::sqlite {
namespace {

constexpr const char* kFirstRows = " LIMIT 4096";

bool is_open(const ColumnInfo& column) {
  return column.declared.empty() ||
         (affinity_of(column.declared) == Affinity::numeric &&
          !column.boolean && !column.timestamp);
}

/// What the values of a column are; NULL is none of them.
struct Seen {
  ColumnInfo* column;
  bool integers = false, reals = false, texts = false, bytes = false;

  void add(int type) {
    integers = integers || type == SQLITE_INTEGER;
    reals = reals || type == SQLITE_FLOAT;
    texts = texts || type == SQLITE_TEXT;
    bytes = bytes || type == SQLITE_BLOB;
  }
  /// Mixed values, and no value, leave the column what it is.
  void tell() const {
    const bool numbers = (integers || reals) && !texts && !bytes;
    const bool undeclared = column->declared.empty();
    if (numbers)
      column->as = undeclared && !reals ? ReadAs::integer : ReadAs::number;
    if (!undeclared) return;
    if (numbers) column->declared = reals ? "real" : "integer";
    if (texts && !integers && !reals && !bytes) column->declared = "text";
  }
};

}  // namespace

void look_at_storage_classes(Connection& connection, const SourceSpec& spec,
                             Table& table) {
  std::string names;
  std::vector<Seen> open;
  for (ColumnInfo& column : table.schema.columns) {
    if (!is_open(column)) continue;
    names += (open.empty() ? "" : ", ") + identifier(column.name);
    open.push_back({.column = &column});
  }
  if (open.empty()) return;
  std::string sql = "SELECT " + names + " FROM " + table.from;
  if (!spec.where.empty()) sql += " WHERE " + in_parentheses(spec.where);
  const Statement rows = connection.prepare(sql + kFirstRows);
  for (bool row = connection.send(rows.get()); row;
       row = connection.next(rows.get()))
    for (std::size_t at = 0; at < open.size(); ++at)
      open[at].add(sqlite3_column_type(rows.get(), static_cast<int>(at)));
  for (const Seen& column : open) column.tell();
}

}  // namespace penstock::sqlite
