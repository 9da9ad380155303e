#include "penstock/sources/files/checked_column.h"

#include <string_view>
#include <utility>

#include "penstock/base/utf8.h"

namespace penstock::files {
namespace {

/// All of it at once: rows are looked at where something is wrong. A column is
/// valid UTF-8 row by row if all its bytes together are, and no row begins with
/// a continuation byte (10xxxxxx): then no border of rows lies within a
/// character.
bool all_is_utf8(const Column& column) {
  if (column.length == 0) return true;
  const std::int64_t begin = column.offset(0);
  std::string_view all(
      reinterpret_cast<const char*>(column.values.data()) + begin,
      static_cast<std::size_t>(column.offset(column.length) - begin));
  auto continues = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
  };
  bool good = is_utf8(all);
  for (std::int64_t row = 0; row < column.length && good; ++row) {
    std::string_view text = column.text(row);
    good = text.empty() || !continues(text[0]);
  }
  return good;
}

}  // namespace

// Offsets of foreign files (Arrow) index the text buffer without further
// checks, so they must not descend, and the last must not exceed `end`.
bool offsets_ascend(const Column& column, std::int64_t end) {
  if (column.length == 0) return true;
  std::int64_t before = column.offset(0);
  bool good = before >= 0;
  for (std::int64_t row = 1; row <= column.length && good; ++row) {
    std::int64_t next = column.offset(row);
    good = next >= before;
    before = next;
  }
  return good && before <= end;
}

void drop_bad_text(
    Column& column,
    const std::function<void(std::int64_t row, std::string why)>& bad) {
  if (all_is_utf8(column)) return;
  Column kept{.type = column.type};
  for (std::int64_t row = 0; row < column.length; ++row) {
    if (column.valid(row) && is_utf8(column.text(row))) {
      kept.append_text(column.text(row));
      continue;
    }
    if (column.valid(row)) bad(row, "holds " + shown_text(column.text(row)));
    kept.append_null();
  }
  column = std::move(kept);
}

}  // namespace penstock::files
