#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "penstock/base/held_memory.h"
#include "penstock/base/sync.h"
#include "penstock/exec/exec.h"
#include "penstock/session/checkpoint.h"

namespace penstock {

/// Writes checkpoints on a thread of its own, one at a time, while the run
/// takes its next steps. What was begun is committed as Checkpoints::save()
/// does it, so that a crash at any point leaves the state before or after.
///
/// All calls come from one thread. Nothing else uses `checkpoints` meanwhile.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(Checkpoints& checkpoints);
  /// Waits for what was begun; its error is logged.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Begins to write; `model` is a copy that nobody changes any more. Only
  /// where busy() is false.
  void begin(SavedState state, std::optional<ModelState> model);
  /// Whether the newest checkpoint is still being written.
  bool busy() const;
  /// Waits until it is written. Throws its error, once.
  void wait();
  /// Throws the error of a checkpoint that failed, once; never waits.
  void check();
  /// The memory of the newest copy, for the next one; only where busy() is
  /// false.
  std::vector<std::byte> spare() { return std::move(spare_); }
  /// Time in which checkpoints were written, up to the last wait() or check().
  Nanoseconds writing() const { return writing_; }

 private:
  struct Work {
    SavedState state;
    std::optional<ModelState> model;
  };
  void write(Work work) noexcept;

  Checkpoints& checkpoints_;
  mutable Mutex mutex_;
  Condition written_;
  bool busy_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ PENSTOCK_GUARDED_BY(mutex_);
  Nanoseconds writing_{0};
  std::vector<std::byte> spare_;
  MemoryCharge charge_{HeldFor::checkpoints, HeldIn::host, 0};
  Queue<Work> begun_{1};
  Stage thread_;  // the last: it uses the others
};

}  // namespace penstock
