#include "penstock/dataset/indexed/expected_rows.h"

namespace penstock {

void check_fingerprint(const Dataset& dataset, const std::string& expected,
                       const std::string& source) {
  if (dataset.fingerprint().starts_with(expected)) return;
  throw Error(ErrorKind::source,
              {.code = "source.fingerprint",
               .what = "the rows are not those that the job expects",
               .where = source,
               .why = "found the fingerprint " +
                      dataset.fingerprint().substr(0, expected.size()) +
                      " in " + std::to_string(dataset.rows()) +
                      " rows, but 'source.fingerprint' is " + expected,
               .next = "restore the old rows or, if these are the right rows, "
                       "write their fingerprint into the job"});
}

}  // namespace penstock
