#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/run/run.h"
#include "penstock/trainer/drawn.h"
#include "penstock/trainer/parameter.h"

namespace penstock {

/// A kind of model, to the steps that are the same for all: what it learns from
/// a batch, and what it measures on held-out rows. One thread; all that it asks
/// of libtorch is queued in the turn of the caller.
class Model {
 public:
  virtual ~Model() = default;
  /// In a fixed order. They share memory with the model; each takes part in the
  /// loss.
  virtual const std::vector<Parameter>& parameters() const = 0;
  /// The mean loss over the rows of a batch, to be learned from: float32, [].
  virtual at::Tensor loss(const Batch& batch, const DrawnFor& rows) = 0;
  /// Whether batches count for more or less than others: by their tokens, say.
  virtual bool counts() const { return false; }
  /// What the batch of the last loss() counts, float32, []; of a model that
  /// counts. Steps that move the weights together then have the loss of all
  /// that they count.
  virtual at::Tensor counted() const { return {}; }
  /// Of the model's state, but not learned. They share memory with it.
  virtual const std::vector<Parameter>& buffers() const;
  /// Looks at the first batch of a process before it is learned from; throws
  /// where the model does not do what it promises.
  virtual void check(const Batch&) {}
  /// The loss of so many made-up rows, which leaves no trace but gradients;
  /// undefined for a model whose memory is not estimated.
  virtual at::Tensor made_up_loss(std::int64_t /*rows*/) { return {}; }
  /// Looks at a batch of held-out rows, without learning from it.
  virtual void look(const Batch& batch) = 0;
  /// What look() saw since the last call, as Stepper::validated() gives it.
  virtual Json seen() = 0;
  /// The share of a true class that is given to all; missing for a model that
  /// has no such setting.
  virtual std::optional<double> smoothing() const { return std::nullopt; }
  /// Further settings of `train` that not every model has, as it follows them.
  virtual std::vector<SwitchInForce> in_force() const { return {}; }
  /// What it does with each row of a step, forwards and backwards.
  virtual RowWork row_work() const { return {}; }
  /// For Stepper::about(), by name.
  virtual Json about() const { return Json::Object{}; }
  /// How its weights are written for other programs, with the files that these
  /// expect beside them.
  virtual WeightsForm form() const { return {}; }
  /// What must be the same in a run that goes on from a checkpoint.
  virtual Json description() const = 0;
};

/// Makes a model on a device, in a turn.
using MakeModel = std::unique_ptr<Model> (*)(const ModelSpec& spec,
                                             const FittedDataset& data,
                                             const at::TensorOptions& options);
template <class Kind>
std::unique_ptr<Model> make_kind(const ModelSpec& spec,
                                 const FittedDataset& data,
                                 const at::TensorOptions& options) {
  return std::make_unique<Kind>(spec, data, options);
}

/// The steps of a model: its loss goes backward, and AdamW moves the weights at
/// the rate that the schedule has for the step's number.
std::unique_ptr<Stepper> make_model_stepper(const ModelSpec& spec,
                                            const FittedDataset& data,
                                            Device& device, std::int64_t steps,
                                            MakeModel make);

/// A tensor of a batch, which must have it, where it lies.
at::Tensor tensor_of(const Batch& batch, const std::string& name);
/// What each row counts, [rows], float32: 0 for padding, else 1.
at::Tensor weights_of(const Batch& batch);

}  // namespace penstock
