#include "penstock/sources/part.h"

#include "penstock/sources/sqlite/sqlite.h"

extern "C" const penstock::SourcePart* penstock_source_part() {
  static constexpr penstock::SourcePart kPart{
      .version = penstock::SourcePart::kVersion,
      .open_source = penstock::sqlite::open_table,
      .read_schema = penstock::sqlite::read_table_schema,
      .create_table = penstock::sqlite::make_table};
  return &kPart;
}
