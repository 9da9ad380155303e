#include "penstock/sources/arrow/arrow_error.h"

#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/arrow/stored_input.h"

namespace penstock::arrow_files {

void fail(const arrow::Status& status, const files::DataFile& file,
          const std::string& where) {
  if (status.detail() != nullptr &&
      status.detail()->type_id() == ThrownDetail::kType)
    static_cast<const ThrownDetail&>(*status.detail()).rethrow();
  fail(ArrowSays{status.message(), status.IsOutOfMemory()}, file, where);
}

}  // namespace penstock::arrow_files
