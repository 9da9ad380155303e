#include "penstock/sources/arrow/arrow_error.h"

#include "penstock/sources/arrow/damaged.h"
#include "penstock/sources/arrow/stored_input.h"

namespace penstock::arrow_files {

void fail(const arrow::Status& status, const files::DataFile& file,
          const std::string& where) {
  if (status.detail() != nullptr &&
      status.detail()->type_id() == ThrownDetail::kType)
    static_cast<const ThrownDetail&>(*status.detail()).rethrow();
  const bool of_newer_arrow = status.message().starts_with("Unrecognized type");
  fail(ArrowSays{.text = status.message(),
                 .no_memory = status.IsOutOfMemory(),
                 .unsupported = status.IsNotImplemented() || of_newer_arrow},
       file, where);
}

}  // namespace penstock::arrow_files
