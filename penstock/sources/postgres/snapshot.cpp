#include "penstock/sources/postgres/snapshot.h"

#include <algorithm>
#include <charconv>

namespace penstock::postgres {
namespace {

/// A part should be worth a connection, which costs some milliseconds.
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

Snapshot::Snapshot(OpenTable& opened, int wish)
    : connection_(opened.connect()) {
  std::string size = "0, 0, 1";
  if (opened.table.has_pages() && connection_.version() >= kHasPageRanges)
    size = "pg_relation_size(" + opened.table.oid + "), pg_table_size(" +
           opened.table.oid + "), current_setting('block_size')";
  Result begun = connection_.execute(
      "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT " + size +
      ", pg_export_snapshot()");
  join_ =
      "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION "
      "SNAPSHOT '" +
      std::string(text_in(begun, 0, 3)) + "'";
  cut(number_in(begun, 0) / number_in(begun, 2), number_in(begun, 1), wish);
}

// The last part has no end, because the table may have grown since its pages
// were counted.
void Snapshot::cut(std::int64_t pages, std::int64_t bytes, std::int64_t wish) {
  std::int64_t parts = std::max<std::int64_t>(
      1, std::min({wish, bytes / kSmallestPartBytes, pages}));
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

Connection* Snapshot::enter() {
  Lock lock(mutex_);
  if (in_use_) return nullptr;
  in_use_ = true;
  return &connection_;
}

void Snapshot::leave() {
  Lock lock(mutex_);
  in_use_ = false;
}

}  // namespace penstock::postgres
