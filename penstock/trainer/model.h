#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/batch_rows.h"
#include "penstock/trainer/drawn.h"
#include "penstock/trainer/mean_loss.h"
#include "penstock/trainer/model_facts.h"

namespace penstock {

class RankShare;

/// A kind of model, to the steps that are the same for all: what it learns from
/// a batch, and what it measures on held-out rows. One thread; all that it asks
/// of libtorch is queued in the turn of the caller.
class Model {
 public:
  virtual ~Model() = default;
  const ModelFacts& facts() const { return facts_; }
  virtual MeanLoss loss(const BatchRows& batch, const DrawnFor& rows) = 0;
  /// Looks at the first batch of a process before it is learned from, and tells
  /// what it has found, by name, for StepperFacts::about; throws where the
  /// model does not do what it promises.
  virtual Json check(const BatchRows&) { return Json::Object{}; }
  /// From here on activations are computed again during backward, to save
  /// memory; false where they were already, or cannot be.
  virtual bool begin_recompute() { return false; }
  /// What it says of each row, [rows, numbers] as ModelFacts::answers names
  /// them, without learning from it. Where the batch has the target, seen()
  /// takes the rows into account, unless it throws.
  virtual at::Tensor look(const BatchRows& batch) = 0;
  /// What follows each row, as Predictor::generate() has it.
  virtual std::vector<std::vector<std::int32_t>> generate(
      const BatchRows& batch, std::int64_t first, const Generation& settings);
  /// How it continues the first rows that look() saw since the last seen(): a
  /// list of {"sample", "prompt", "tokens"}, by ids of tokens. Null for a model
  /// that makes no text.
  virtual Json texts() { return {}; }
  /// What look() saw since the last call, as Stepper::validated() gives it. Of
  /// several ranks (null: one) what all of them saw, whatever each of them saw.
  virtual Validated seen(RankShare* ranks) = 0;

 protected:
  ModelFacts facts_;  // complete once it is made
};

}  // namespace penstock
