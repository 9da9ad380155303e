#include "penstock/transforms/fake/golden_rows.h"

#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace penstock {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};

// "2023-11-14T22:13:20.125-01:30"; without a zone it is UTC.
double seconds_since_1970(const std::string& stamp) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, read = 0;
  double second = 0;
  std::sscanf(stamp.c_str(), "%d-%d-%d%*c%d:%d:%lf%n", &year, &month, &day,
              &hour, &minute, &second, &read);
  std::string zone = stamp.substr(static_cast<std::size_t>(read));
  int offset = 0;
  if (zone.size() == 6) {
    offset = 60 * std::atoi(zone.substr(1, 2).c_str()) +
             std::atoi(zone.substr(4, 2).c_str());
    if (zone[0] == '-') offset = -offset;
  }
  std::chrono::sys_days date = std::chrono::year(year) / month / day;
  double days = static_cast<double>(date.time_since_epoch().count());
  return days * 86400 + hour * 3600 + (minute - offset) * 60 + second;
}

std::string text_at(sqlite3_stmt* row, int column) {
  return {reinterpret_cast<const char*>(sqlite3_column_text(row, column)),
          static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}

}  // namespace

Block golden_block(const std::string& key, KeyList& keys) {
  sqlite3* opened = nullptr;
  sqlite3_open_v2(PENSTOCK_TEST_DATA "/j1/golden.sqlite", &opened,
                  SQLITE_OPEN_READONLY, nullptr);
  std::unique_ptr<sqlite3, CloseDatabase> database(opened);
  std::string query = "select " + key +
                      ", receivers, tx_lat, tx_lon, recorded_at, seen_at "
                      "from measurements order by tx_lat";
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(opened, query.c_str(), -1, &prepared, nullptr) !=
      SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(opened));
  std::unique_ptr<sqlite3_stmt, CloseStatement> row(prepared);

  Block block;
  block.columns.resize(5);
  bool text_key = key == "name";
  keys = KeyList(text_key ? ColumnType::text : ColumnType::int64);
  block.columns[0].type = ColumnType::json;
  for (; sqlite3_step(prepared) == SQLITE_ROW; ++block.rows) {
    if (text_key)
      keys.append_bytes(text_at(prepared, 0));
    else
      keys.append_integer(sqlite3_column_int64(prepared, 0));
    block.columns[0].append_text(text_at(prepared, 1));
    for (int i = 2; i < 5; ++i)
      block.columns[static_cast<std::size_t>(i - 1)].append_float64(
          sqlite3_column_double(prepared, i));
    block.columns[4].append_float64(seconds_since_1970(text_at(prepared, 5)));
  }
  return block;
}

std::vector<std::string> golden_texts() {
  KeyList keys;
  Block block = golden_block("id", keys);
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < block.rows; ++row)
    texts.emplace_back(block.columns[0].text(row));
  return texts;
}

}  // namespace penstock
