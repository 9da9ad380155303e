#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/loader/loader.h"
#include "penstock/session/stepper.h"

namespace penstock {

class RankGroup;
class Session;
struct Job;

/// What a model says of a row: some numbers, and what they mean.
struct AnswerFacts {
  enum class Of : std::uint8_t {
    one_class,  ///< a probability for each class; they add up to 1
    labels,     ///< a probability for each label, independent of the others
    values,     ///< numbers in their own units
  };
  Of of = Of::values;
  /// By number: the class or label, or the name of the value's column.
  std::vector<Json> names = {};
};

/// Settings of a text that a model goes on with.
struct Generation {
  std::int64_t max_tokens = 64;  ///< that are made at most, behind the prompt
  double temperature = 0;        ///< 0: always the likeliest token
  double top_p = 1;  ///< of the likeliest tokens, those that have this share
  std::uint64_t seed = 0;
  /// Tokens that end a text; they are not part of it.
  std::vector<std::int32_t> ends = {};
};

/// Error(request), code predict.no_text, of a model that makes no text.
Error no_text_error();

/// A model with weights that are fixed. One thread.
class Predictor {
 public:
  explicit Predictor(AnswerFacts facts) : facts_(std::move(facts)) {}
  virtual ~Predictor() = default;
  const AnswerFacts& facts() const { return facts_; }

  /// Takes the tensors "model.NAME". Throws Error(request) that names the first
  /// one that is missing, unknown, or of another type or shape.
  virtual void use(const ModelState& weights) = 0;
  /// The numbers of each row of a batch of `session`, row after row. The batch
  /// need not have the target; where it has, measured() takes it into account.
  virtual std::vector<double> predict(
      const std::shared_ptr<Batch>& batch,
      const std::shared_ptr<Session>& session) = 0;
  /// The metrics of the batches since the last call, by name, as a validation
  /// has them: of those of all ranks where there are several (null: one), which
  /// all call it. Empty where none had the target.
  virtual Json measured(RankGroup* ranks) = 0;
  /// For each row of the batch the tokens that follow it: its prompt is what is
  /// no target of the loss, or where all is, all of it. `first` is the number
  /// of the first row, by which their random numbers are told apart. Throws
  /// Error(request), code predict.no_text, where the model makes no text.
  virtual std::vector<std::vector<std::int32_t>> generate(
      const std::shared_ptr<Batch>& batch,
      const std::shared_ptr<Session>& session, std::int64_t first,
      const Generation& settings);

 protected:
  AnswerFacts facts_;
};

}  // namespace penstock
