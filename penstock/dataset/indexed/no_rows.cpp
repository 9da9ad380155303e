#include "penstock/dataset/indexed/no_rows.h"

#include "penstock/base/error.h"

namespace penstock {

void refuse_no_rows(const std::string& source, std::int64_t too_short,
                    std::int64_t bad_rows) {
  const bool none = too_short == 0 && bad_rows == 0;
  throw Error(
      ErrorKind::source,
      {.code = "source.empty",
       .what = "there are no rows to train on",
       .where = source,
       .why = none ? "found 0 rows, expected at least one"
                   : std::to_string(too_short) + " rows were too short and " +
                         std::to_string(bad_rows) + " unusable",
       .next = none ? "check that 'source' names the right table or file, that "
                      "it was written completely, and 'source.where'"
                    : "check 'source.where' and the fields' 'min'"});
}

}  // namespace penstock
