#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "penstock/base/block.h"

namespace penstock {

/// The bytes of encoded pictures of a column: those that it holds, or, where
/// there is a folder, those of the files whose paths it holds. One per thread.
class PictureBytes {
 public:
  /// `folder` is where relative paths begin; empty: the column holds bytes.
  explicit PictureBytes(std::string folder) : folder_(std::move(folder)) {}

  /// `bytes` are valid until the next call. What is wrong; empty: nothing.
  std::string read(const Column& column, std::int64_t row,
                   std::string_view& bytes);

 private:
  std::string read_file(std::string_view path);

  const std::string folder_;
  std::string file_;
};

}  // namespace penstock
