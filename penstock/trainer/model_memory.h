#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "penstock/session/session.h"
#include "penstock/trainer/adamw.h"
#include "penstock/trainer/graphs/step_graphs.h"
#include "penstock/trainer/model.h"

namespace penstock {

/// The memory of a model's steps, and what they give up when it runs out: what
/// PyTorch's allocator keeps, then rows at once and activations, in the order
/// that saves most. All of it must outlive this.
class ModelMemory final : public StepMemory {
 public:
  /// Takes forward and backward of so many made-up rows, and restores all that
  /// it changed; the bytes of the model at the peak.
  using TryRows = std::function<std::int64_t(std::int64_t rows)>;

  ModelMemory(Model& model, const AdamW& optimizer, const Learning& learning,
              const StepGraphs& graphs, c10::Device torch, TryRows try_rows);

  /// Throws Error(out_of_memory) where nothing would help, since what is always
  /// there exceeds the limit.
  void check_limit() const;

  MemoryByOwner try_step(std::int64_t rows) override;
  MemoryByOwner fixed() const override;
  MemoryByOwner peak() const override;
  MemoryByOwner take_peak() override;
  bool give_way(std::int64_t step, std::int64_t rows) override;
  void follow(const OomEvent& event) override;
  std::optional<std::int64_t> row_alone() const override;

  /// Of a model's state: what shortages have changed.
  void save(Json& state) const;
  void restore(const Json& state);

  /// Rows [begin, end) of the batch go through the model now.
  void work_on(std::int64_t begin, std::int64_t end) { part_ = {begin, end}; }
  /// Most rows that a validation looks at at once.
  std::int64_t& validation_rows() { return validation_rows_; }

 private:
  MemoryByOwner by_owner(std::int64_t total) const;
  MemoryByOwner with_graphs(std::int64_t most) const;
  bool halve(std::int64_t step, std::int64_t rows);
  bool recompute();

  Model& model_;
  const AdamW& optimizer_;
  const Learning& learning_;
  const StepGraphs& graphs_;
  const c10::Device torch_;
  const TryRows try_rows_;
  std::int64_t validation_rows_ = INT64_MAX;
  struct {
    std::int64_t begin = 0, end = 0;
  } part_;
  // Steps that ran out of memory: whose batch was halved last, and for which
  // the allocator gave back what it keeps.
  std::int64_t halved_at_ = -1, emptied_at_ = -1;
  bool recomputes_ = false;  // since a shortage
  std::int64_t most_ = 0;    // bytes, before the last take_peak()
  MemoryByOwner tried_;
};

}  // namespace penstock
