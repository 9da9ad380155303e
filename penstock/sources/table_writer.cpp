#include "penstock/sources/table_writer.h"

#include <utility>

#include "penstock/base/error.h"

namespace penstock {

void refuse_table(const SourceSpec& spec, std::string place, std::string code,
                  std::string why, std::string next) {
  throw Error(ErrorKind::request,
              {.code = std::move(code),
               .what = "cannot make table '" + spec.table + "'",
               .where = std::move(place),
               .why = std::move(why),
               .next = std::move(next)});
}

SourceSpec without_delay(SourceSpec spec) {
  spec.round_trip_ms = 0;
  return spec;
}

void check_block(const Block& block, const std::vector<NewColumn>& columns) {
  PENSTOCK_ASSERT(block.columns.size() == columns.size(),
                  "a block has the columns of its table");
  for (std::size_t c = 0; c < columns.size(); ++c)
    PENSTOCK_ASSERT(block.columns[c].type == columns[c].type,
                    "a block has the types of its table");
}

}  // namespace penstock
