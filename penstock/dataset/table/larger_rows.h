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
#include "penstock/dataset/read_ahead.h"
#include "penstock/dataset/table/parsed_rows.h"

namespace penstock {

/// Rows in the larger form of their fields, which are kept as they are made,
/// and never leave. Thread-safe.
class LargerRows {
 public:
  /// Of these fields, in that form.
  struct Making {
    std::vector<Field> fields;
    BoundFields bound;
    std::vector<Json> statistics;     ///< by field
    std::vector<std::size_t> larger;  ///< which of them have another form
  };
  /// Which rows are kept.
  struct Keeping {
    std::optional<std::int64_t> epochs;  ///< in all; missing: nobody knows
    int ranks = 1;  ///< that share an epoch's rows, each epoch in another way
    std::size_t most = SIZE_MAX;  ///< bytes
    std::size_t left = 0;         ///< bytes of the host's memory stay free
  };
  /// A row's tensors, and then a run for each field, each of which may be
  /// empty.
  using Parts = std::vector<std::span<const std::byte>>;

  LargerRows(std::int64_t rows, Making making, const Keeping& keeping);

  const Making& making() const { return making_; }
  const RowLayout& layout() const { return layout_; }

  /// What making and keeping a row costs is back when it has come to a rank so
  /// many times more.
  static constexpr std::int64_t kLeastUses = 2;
  /// Whether a row that `epoch` has comes to a rank so often after it.
  static bool pays(std::int64_t epochs, int ranks, std::int64_t epoch) {
    return epochs - 1 - epoch >= kLeastUses * ranks;
  }

  /// Whether rows of a batch at `at` are to be made in this form and kept: they
  /// come again often enough, or where nobody knows that, they did come again
  /// in a loader of these rows, and there is room.
  bool keeps_at(Position at);
  bool has(SampleId id) const { return place_of(id) != nullptr; }
  /// Puts the parts of a row that is there into `parts`: valid as long as this
  /// is.
  void find(SampleId id, Parts& parts) const;
  /// Keeps it, unless it is there, or there is no room.
  void keep(SampleId id, const Parts& parts);

 private:
  const std::byte* place_of(SampleId id) const {
    return rows_[static_cast<std::size_t>(id)].load(std::memory_order_acquire);
  }
  /// Null: there is no room.
  std::byte* take(std::size_t bytes);

  const Making making_;
  const RowLayout layout_;
  const Keeping keeping_;
  // Each is written once, when its bytes are: the sizes of its parts, and the
  // parts, one after the other.
  std::vector<std::atomic<const std::byte*>> rows_;
  // -1: none was filled. Which of several threads is the first does not matter:
  // rows are the same in either form.
  std::atomic<std::int64_t> first_epoch_{-1};
  std::atomic<bool> again_{false};  // a loader had rows again
  std::atomic<bool> full_{false};   // neither is taken back
  Mutex mutex_;
  // Few and large: the system maps only so many pieces for a process.
  std::vector<std::unique_ptr<std::byte[]>> pieces_ PENSTOCK_GUARDED_BY(mutex_);
  std::span<std::byte> room_ PENSTOCK_GUARDED_BY(mutex_);  // in the last piece
  MemoryCharge charge_ PENSTOCK_GUARDED_BY(mutex_){HeldFor::rows, HeldIn::host,
                                                   0};
};

/// I/O threads that leave out the rows that are kept.
std::unique_ptr<ReadAhead> reading_others(std::unique_ptr<ReadAhead> all,
                                          const LargerRows& kept);

}  // namespace penstock
