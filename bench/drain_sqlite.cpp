#include <sqlite3.h>

#include <memory>

#include "bench/drain.h"
#include "penstock/base/base.h"

namespace penstock {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};

}  // namespace

Drained drain_sqlite(const std::string& path, const std::string& table) {
  sqlite3* opened = nullptr;
  int status =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  std::unique_ptr<sqlite3, CloseDatabase> database(opened);
  PENSTOCK_ASSERT(status == SQLITE_OK, "the database can be opened");
  std::string sql = "SELECT id, receivers, tx_lat, tx_lon FROM " + table;
  sqlite3_stmt* prepared = nullptr;
  status = sqlite3_prepare_v2(opened, sql.c_str(), -1, &prepared, nullptr);
  std::unique_ptr<sqlite3_stmt, CloseStatement> statement(prepared);
  PENSTOCK_ASSERT(status == SQLITE_OK, "the table is there");
  Drained drained;
  double sum = 0;
  while (sqlite3_step(prepared) == SQLITE_ROW) {
    ++drained.rows;
    sum += static_cast<double>(sqlite3_column_int64(prepared, 0));
    const unsigned char* text = sqlite3_column_text(prepared, 1);
    sum += text[0];
    drained.bytes += sqlite3_column_bytes(prepared, 1) + 24;
    sum += sqlite3_column_double(prepared, 2);
    sum += sqlite3_column_double(prepared, 3);
  }
  PENSTOCK_ASSERT(sum > 0, "the values were looked at");
  return drained;
}

}  // namespace penstock
