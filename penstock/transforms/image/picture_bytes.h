#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/base/block.h"
#include "penstock/transforms/named_files.h"

namespace penstock {

/// The bytes of encoded pictures of a column: those that it holds, or, where
/// there is a folder, those of the files whose paths it holds. One per thread.
class PictureBytes {
 public:
  /// `folder` is where relative paths begin; empty: the column holds bytes.
  /// `opened_ns`: when the data set was opened (file_clock_ns()).
  PictureBytes(std::string folder, std::int64_t opened_ns)
      : folder_(std::move(folder)), opened_ns_(opened_ns) {}

  /// `bytes` are valid until the next call. What is wrong; empty: nothing.
  /// Throws Error(source), files.changed, for a file that has changed since.
  std::string read(const Column& column, std::int64_t row,
                   std::string_view& bytes);
  /// The files since the last call, as FieldParser::take_notes() gives them.
  std::unique_ptr<FieldNotes> take_notes();

 private:
  std::string read_file(std::string_view path);
  std::string read_all(const std::filesystem::path& path);

  const std::string folder_;
  const std::int64_t opened_ns_;
  std::string file_;
  FileNotes notes_;
};

}  // namespace penstock
