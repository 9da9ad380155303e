#pragma once

#include <string>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/sources/spec.h"

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

// For those who write one.

/// Throws Error(request): the table of `spec` cannot be made at this place.
[[noreturn]] void refuse_table(const SourceSpec& spec, std::string place,
                               std::string code, std::string why,
                               std::string next);
/// A writer has no simulated latency.
SourceSpec without_delay(SourceSpec spec);
/// Ends with an internal error where a block has other columns than its table.
void check_block(const Block& block, const std::vector<NewColumn>& columns);

}  // namespace penstock
