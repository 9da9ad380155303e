#pragma once

#include <string>

#include "penstock/base/block.h"

namespace penstock {

/// A column of a table that we make.
struct NewColumn {
  std::string name;
  ColumnType type = ColumnType::float64;
  std::string declared;      ///< overrides the source's own word: "jsonb"
  bool primary_key = false;  ///< at most one
};

/// Fills a new table. Nothing of it is visible to others before finish();
/// destroyed without finish(), it leaves what was there before.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  /// The block has one column for each NewColumn, in order.
  virtual void write(const Block& block) = 0;
  virtual void finish() = 0;
};

}  // namespace penstock
