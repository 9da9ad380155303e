#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/listed_numbers.h"

namespace penstock {

/// Numbers of texts that hold a list of them as JSON does: "[1, 2.5]". Lists in
/// lists, "[[1, 2], [3, 4]]", are read as one, in their order. One per thread.
class JsonNumbers {
 public:
  /// What is wrong with the text; empty: nothing, and numbers() holds what it
  /// does, until the next call.
  std::string read(std::string_view text);

  /// int64 where all of them are such, else float64.
  ListedNumbers numbers() const;

 private:
  std::string read_number(const char*& at, const char* end);

  std::vector<std::int64_t> integers_;  // as long as all numbers are
  std::vector<double> numbers_;
  bool whole_ = true;
};

}  // namespace penstock
