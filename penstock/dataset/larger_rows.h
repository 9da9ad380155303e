#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/base/held_memory.h"
#include "penstock/base/sync.h"
#include "penstock/dataset/parsed_rows.h"
#include "penstock/dataset/read_ahead.h"

namespace penstock {

/// Rows of a source by position in the larger form of their fields, which are
/// kept as they are made and never leave. Thread-safe.
class LargerRows {
 public:
  /// Of these fields, in that form.
  struct Making {
    std::vector<Field> fields;
    BoundFields bound;
    std::vector<Json> statistics;  ///< by field
  };
  /// Its tensors, and then a run for each field, which may be empty.
  using Parts = std::vector<std::span<const std::byte>>;

  /// `first_epoch`: they are kept from the first epoch on that is filled, else
  /// from the second. Nothing is kept that would leave less than `left` bytes
  /// of the host's memory free.
  LargerRows(std::int64_t rows, Making making, bool first_epoch,
             std::size_t left);

  const Making& making() const { return making_; }
  const RowLayout& layout() const { return layout_; }

  /// Whether rows of a batch at `at` are made in this form. Once they are, all
  /// later ones are.
  bool used_at(Position at);
  bool has(SampleId id) const { return place_of(id) != nullptr; }
  /// Puts the parts of a row that is there into `parts`: valid as long as this
  /// is.
  void find(SampleId id, Parts& parts) const;
  /// Keeps it, unless it is there, or memory is short.
  void keep(SampleId id, const Parts& parts);

 private:
  const std::byte* place_of(SampleId id) const {
    return rows_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
  }
  /// Null: there is no room.
  std::byte* take(std::size_t bytes);

  const Making making_;
  const RowLayout layout_;
  const std::size_t left_;
  // Each is written once, when its bytes are: the sizes of its parts, and the
  // parts, one after the other.
  std::vector<std::atomic<const std::byte*>> rows_;
  // -1: none was filled. Which of several threads is the first does not matter:
  // rows are the same in either form.
  std::atomic<std::int64_t> first_epoch_{-1};
  std::atomic<bool> used_;  // set before a row is kept
  Mutex mutex_;
  // Few and large: the system maps only so many pieces for a process.
  std::vector<std::unique_ptr<std::byte[]>> pieces_ PENSTOCK_GUARDED_BY(mutex_);
  std::span<std::byte> room_ PENSTOCK_GUARDED_BY(mutex_);  // in the last piece
  bool full_ PENSTOCK_GUARDED_BY(mutex_) = false;
  MemoryCharge charge_ PENSTOCK_GUARDED_BY(mutex_){HeldFor::rows, HeldIn::host,
                                                   0};
};

/// I/O threads that leave out the rows that are kept.
std::unique_ptr<ReadAhead> reading_others(std::unique_ptr<ReadAhead> all,
                                          const LargerRows& kept);

}  // namespace penstock
