#include "penstock/sources/plugin.h"
#include "penstock/sources/postgres/postgres.h"

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  static constexpr penstock::SourcePlugin kPart{
      .open_source = penstock::postgres::open_table,
      .read_schema = penstock::postgres::read_table_schema,
      .create_table = penstock::postgres::make_table};
  return &kPart;
}
