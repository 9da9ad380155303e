#include "penstock/sources/plugin.h"
#include "penstock/sources/sqlite/sqlite.h"

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  static constexpr penstock::SourcePlugin kPart{
      .open_source = penstock::sqlite::open_table,
      .read_schema = penstock::sqlite::read_table_schema,
      .create_table = penstock::sqlite::make_table};
  return &kPart;
}
