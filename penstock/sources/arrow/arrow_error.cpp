#include "penstock/sources/arrow/arrow_error.h"

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/arrow/stored_input.h"

namespace penstock::arrow_files {

void fail(const arrow::Status& status, const files::DataFile& file,
          const std::string& where) {
  if (status.detail() != nullptr &&
      status.detail()->type_id() == ThrownDetail::kType)
    static_cast<const ThrownDetail&>(*status.detail()).rethrow();
  std::string says = beginning(status.message(), 300);
  for (char& c : says)
    if (c == '\n') c = ' ';
  const std::string place = file.path + (where.empty() ? "" : ", ") + where;
  if (status.IsOutOfMemory())
    throw Error(ErrorKind::out_of_memory,
                {.code = "files.no_memory",
                 .what = "cannot read '" + file.path + "'",
                 .where = place,
                 .why = "Arrow says: " + says,
                 .next = "write the file in smaller row groups or batches, or "
                         "give the job more memory"});
  // What another program has changed is not damaged.
  files::check_unchanged(file);
  throw Error(
      ErrorKind::source,
      {.code = "files.damaged",
       .what = "cannot read '" + file.path + "'",
       .where = place,
       .why = "Arrow says: " + says,
       .next = "get an intact copy of the file: it is damaged, cut off, "
               "or of another format"});
}

}  // namespace penstock::arrow_files
