#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/trainer/drawn.h"
#include "penstock/trainer/mean_loss.h"
#include "penstock/trainer/parameter.h"

namespace penstock {

/// What is known of a model once it is made.
struct ModelFacts {
  /// What is learned, in a fixed order. It shares memory with the model; each
  /// takes part in the loss.
  std::vector<Parameter> parameters;
  /// Of the model's state, but not learned. They share memory with it.
  std::vector<Parameter> buffers = {};
  /// Of all weights, learned or not; 0: those that are learned are all.
  std::int64_t numbers = 0, bytes = 0;
  /// Whether batches count for more or less than others: by their tokens, say.
  bool counts = false;
  /// The share of a true class that is given to all; missing for a model that
  /// has no such setting.
  std::optional<double> smoothing = {};
  /// Further settings of `train` that not every model has, as it follows them.
  std::vector<SwitchInForce> in_force = {};
  /// What it does with each row of a step, forwards and backwards.
  RowWork row_work = {};
  /// How its weights are written for other programs, with the files that these
  /// expect beside them.
  WeightsForm form = {};
  /// What the numbers mean that it gives for each row.
  AnswerFacts answers = {};
  /// What must be the same in a run that continues from a checkpoint.
  Json description;
};

/// A kind of model, to the steps that are the same for all: what it learns from
/// a batch, and what it measures on held-out rows. One thread; all that it asks
/// of libtorch is queued in the turn of the caller.
class Model {
 public:
  virtual ~Model() = default;
  const ModelFacts& facts() const { return facts_; }
  virtual MeanLoss loss(const Batch& batch, const DrawnFor& rows) = 0;
  /// Looks at the first batch of a process before it is learned from, and tells
  /// what it has found, by name, for StepperFacts::about; throws where the
  /// model does not do what it promises.
  virtual Json check(const Batch&) { return Json::Object{}; }
  /// The loss of so many made-up rows, which leaves no trace but gradients;
  /// undefined for a model whose memory is not estimated.
  virtual at::Tensor made_up_loss(std::int64_t /*rows*/) { return {}; }
  /// What it says of each row, [rows, numbers] as ModelFacts::answers names
  /// them, without learning from it. Where the batch has the target, seen()
  /// takes the rows into account.
  virtual at::Tensor look(const Batch& batch) = 0;
  /// What follows each row, as Predictor::generate() has it.
  virtual std::vector<std::vector<std::int32_t>> generate(
      const Batch& batch, std::int64_t first, const Generation& settings);
  /// What look() saw since the last call, as Stepper::validated() gives it.
  virtual Validated seen() = 0;

 protected:
  ModelFacts facts_;  // complete once it is made
};

/// Makes a model on a device, in a turn.
using MakeModel = std::unique_ptr<Model> (*)(const ModelSpec& spec,
                                             const FittedFields& data,
                                             const at::TensorOptions& options);

/// The steps of a model: its loss goes backward, and AdamW moves the weights at
/// the rate that the schedule has for the step's number.
std::unique_ptr<Stepper> make_model_stepper(const ModelSpec& spec,
                                            const FittedFields& data,
                                            Device& device, std::int64_t steps,
                                            MakeModel make);

/// Makes predictions of a model whose weights are fixed.
std::unique_ptr<Predictor> make_model_predictor(const ModelSpec& spec,
                                                const FittedFields& data,
                                                Device& device, MakeModel make);

bool has_tensor(const Batch& batch, const std::string& name);
/// A tensor of a batch, which must have it, where it lies.
at::Tensor tensor_of(const Batch& batch, const std::string& name);
/// What each row counts, [rows], float32: 0 for padding, else 1.
at::Tensor weights_of(const Batch& batch);

}  // namespace penstock
