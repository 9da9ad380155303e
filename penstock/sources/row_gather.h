#pragma once

#include <cstdint>
#include <vector>

#include "penstock/base/block.h"

namespace penstock {

/// Puts rows of several blocks into the order in which they were requested.
/// Used once.
class RowGather {
 public:
  RowGather(std::vector<ColumnType> types, std::int64_t rows);

  /// Row i of `found` is row `rows[i]` of the result; what is added later takes
  /// the place of what was there before.
  void add(Block found, std::vector<std::int64_t> rows);
  /// Every row of the result has been added.
  void finish(Block& out);

 private:
  struct Part {
    Block block;
    std::vector<std::int64_t> rows;
  };
  struct Place {
    std::size_t part = 0;
    std::int64_t row = -1;
  };

  const std::vector<ColumnType> types_;
  std::vector<Part> parts_;
  std::vector<Place> places_;  // by row of the result
};

}  // namespace penstock
