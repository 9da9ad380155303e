#include "penstock/sources/sqlite/storage_classes.h"

#include <string_view>

#include "penstock/sources/condition.h"

namespace penstock::sqlite {
namespace {

constexpr const char* kFirstRows = " LIMIT 4096";

bool is_open(const ColumnInfo& column) {
  return column.declared.empty() ||
         (affinity_of(column.declared) == Affinity::numeric &&
          !column.boolean && !column.timestamp);
}

/// What the values of a column are; NULL is not one of them.
struct Seen {
  ColumnInfo* column;
  bool integers = false, reals = false, texts = false, bytes = false;

  void add(std::string_view type) {
    integers = integers || type == "integer";
    reals = reals || type == "real";
    texts = texts || type == "text";
    bytes = bytes || type == "blob";
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
    // SQLite finds it without reading a value, which may be a picture.
    names += (open.empty() ? "typeof(" : ", typeof(") +
             identifier(column.name) + ")";
    open.push_back({.column = &column});
  }
  if (open.empty()) return;
  std::string sql = "SELECT " + names + " FROM " + table.from;
  if (!spec.where.empty()) sql += " WHERE " + in_parentheses(spec.where);
  const Statement rows = connection.prepare(sql + kFirstRows);
  for (bool row = connection.send(rows.get()); row;
       row = connection.next(rows.get()))
    for (std::size_t at = 0; at < open.size(); ++at)
      open[at].add(text_at(rows.get(), static_cast<int>(at), false));
  for (const Seen& column : open) column.tell();
}

}  // namespace penstock::sqlite
