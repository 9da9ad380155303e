#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "penstock/session/session.h"
#include "penstock/trainer/mean_loss.h"
#include "penstock/trainer/target.h"

namespace penstock {

class RankShare;

/// What a classifier's answers are compared with: the class of each row, or its
/// labels, of which it has any number.
class ClassTask {
 public:
  virtual ~ClassTask() = default;
  /// `answers`: [rows, classes], float32, how much each class is preferred.
  virtual MeanLoss loss(const at::Tensor& answers,
                        const Truth& truth) const = 0;
  /// Keeps what seen() is made of, unless it throws. Classes weigh the same
  /// here. The loss of each row, [rows]; -1 for one without a truth.
  virtual at::Tensor look(const at::Tensor& answers,
                          const BatchRows& batch) = 0;
  /// What look() saw since the last call, see Model::seen().
  virtual Validated seen(RankShare* ranks) = 0;
};

/// `smoothing`: of a class, the share that is given to all classes alike; of
/// labels, how far their truths are moved towards a half. `balance`: measures
/// that count each class once.
std::unique_ptr<ClassTask> make_class_task(const Target& target,
                                           double smoothing, bool balance,
                                           at::Device device);

}  // namespace penstock
