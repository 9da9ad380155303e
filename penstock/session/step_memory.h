#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What can be given up for memory, the cheapest first.
enum class OomAction : std::uint8_t {
  rows_to_host,     ///< the cached rows on the device
  look_ahead,       ///< batches on the device before their step
  allocator_cache,  ///< what PyTorch keeps for later tensors
  micro_batch,      ///< rows that go through the model at once
  gradient_checkpointing,
  validation_rows,  ///< as micro_batch, for validation
};
std::string_view name_of(OomAction action);
/// Throws Error(internal) for another name.
OomAction oom_action_named(std::string_view name);

/// A reaction to a shortage of memory.
struct OomEvent {
  std::int64_t step = 0;  ///< of the run, from 0
  /// Rows that went through the model at once before, and do so from here on.
  std::int64_t from = 0, to = 0;
  OomAction action = OomAction::micro_batch;
  bool exact = true;  ///< false: the result differs from that without shortage
};
Json json_of(const std::vector<OomEvent>& events);
/// One entry of that. Throws Error(internal) for another document.
OomEvent parse_oom_event(const Json& json);

/// Bytes of a model on its device, by owner.
struct MemoryByOwner {
  std::int64_t parameters = 0;   ///< buffers included
  std::int64_t gradients = 0;    ///< those kept of `train.accumulate` included
  std::int64_t optimizer = 0;    ///< the averages of `train.ema` included
  std::int64_t activations = 0;  ///< all else that a step holds
  std::int64_t total() const {
    return parameters + gradients + optimizer + activations;
  }
};

/// What the memory of a model's steps is, and what can be done about it. Part
/// of a Stepper, with its rules for threads.
class StepMemory {
 public:
  virtual ~StepMemory() = default;

  /// Runs forward and backward of `rows` made-up rows, as long as rows can be,
  /// in micro-batches as they are, and restores all that it changed, bit for
  /// bit. What the model's memory is at the peak. Between steps. Throws
  /// Error(out_of_memory).
  virtual MemoryByOwner try_step(std::int64_t rows) = 0;
  /// What is there between steps, and the gradients; known without a trial.
  virtual MemoryByOwner fixed() const = 0;
  /// The peak of all steps so far.
  virtual MemoryByOwner peak() const = 0;
  /// The peak of the steps since the last call.
  virtual MemoryByOwner take_peak() = 0;

  /// Most rows that go through the model at once; INT64_MAX: whole batches.
  std::int64_t micro_batch() const { return micro_; }
  void use_micro_batch(std::int64_t rows) { micro_ = rows; }
  /// After a step of `rows` rows that ran out of memory: gives up the next
  /// thing, and adds the event. False: nothing is left that may be given up.
  /// Throws Error(out_of_memory) where no smaller step would fit.
  virtual bool give_way(std::int64_t step, std::int64_t rows) = 0;
  /// Gives up what another rank has given up with give_way(), and adds its
  /// event. The default only adds it.
  virtual void follow(const OomEvent& event) { add(event); }

  /// The row of the last batch that ran out of memory by itself.
  virtual std::optional<std::int64_t> row_alone() const = 0;

  /// In the order in which they happened.
  const std::vector<OomEvent>& events() const { return events_; }
  void add(const OomEvent& event);

 protected:
  std::int64_t micro_ = INT64_MAX;  ///< rows at once, at most

 private:
  std::vector<OomEvent> events_;
};

}  // namespace penstock
