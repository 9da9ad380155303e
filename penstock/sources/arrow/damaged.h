#pragma once

#include <string>

#include "penstock/sources/files/data_files.h"

namespace penstock::arrow_files {

/// What a library that reads Arrow and Parquet files says of one that it
/// cannot read.
struct ArrowSays {
  std::string text;
  bool no_memory = false;
  bool unsupported = false;  ///< the library lacks a type or an encoding
};

/// Throws Error(source), files.damaged, files.unsupported or files.changed, or
/// Error(out_of_memory). `where` is a part of the file: "row group 3 (rows
/// 100..200)"; may be empty.
[[noreturn]] void fail(ArrowSays says, const files::DataFile& file,
                       const std::string& where);

/// Error(source), files.damaged or files.changed, for what we see ourselves.
[[noreturn]] void refuse_damaged(const files::DataFile& file,
                                 const std::string& where, std::string why);
/// The same of a file that is in another format than it seems.
[[noreturn]] void refuse_format(const files::DataFile& file, std::string why,
                                std::string next);

/// "row group 3 (rows 100..200)".
std::string group_name(std::int64_t group, std::int64_t first,
                       std::int64_t end);
/// "record batch 3".
std::string batch_name(std::int64_t batch);

}  // namespace penstock::arrow_files
