#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <string>
#include <utility>

#include "penstock/sources/files/data_files.h"

namespace penstock::arrow_files {

/// Throws Error(source), files.damaged or files.unsupported, or
/// Error(out_of_memory), for what Arrow says. `where` is a part of the file:
/// "row group 3 (rows 100..200)"; may be empty.
[[noreturn]] void fail(const arrow::Status& status, const files::DataFile& file,
                       const std::string& where);

inline void check(const arrow::Status& status, const files::DataFile& file,
                  const std::string& where) {
  if (!status.ok()) [[unlikely]]
    fail(status, file, where);
}

template <class Value>
Value checked(arrow::Result<Value> result, const files::DataFile& file,
              const std::string& where) {
  check(result.status(), file, where);
  return std::move(result).ValueUnsafe();
}

}  // namespace penstock::arrow_files
