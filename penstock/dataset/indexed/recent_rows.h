#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "penstock/base/held_memory.h"
#include "penstock/base/sample.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// A sample as stored, or why it cannot be used.
struct PreparedRow {
  std::vector<std::byte> tensors;            ///< its stored row
  std::vector<std::vector<std::byte>> runs;  ///< by field
  std::optional<RowFault> fault;             ///< then it is all that is there

  std::size_t bytes() const;
};

/// The samples that were prepared last, up to so many bytes. One thread's at a
/// time.
class RecentRows {
 public:
  explicit RecentRows(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Null: it is not there, or no longer.
  std::shared_ptr<const PreparedRow> find(SampleId id) const;
  /// The oldest make room for it.
  void add(SampleId id, std::shared_ptr<const PreparedRow> row);
  void clear();

 private:
  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::unordered_map<SampleId, std::shared_ptr<const PreparedRow>> rows_;
  std::deque<SampleId> order_;
  MemoryCharge charge_{HeldFor::records, HeldIn::host, 0};
};

}  // namespace penstock
