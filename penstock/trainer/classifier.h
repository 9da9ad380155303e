#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "penstock/trainer/layers.h"
#include "penstock/trainer/model.h"
#include "penstock/trainer/target.h"

namespace penstock {

/// A network that tells the class of a tensor.
class ClassNetwork {
 public:
  /// What a call is for.
  enum class Mode : std::uint8_t {
    learn,  ///< statistics of batches are those of the batch, and kept
    trial,  ///< the same, but nothing is kept
    look,   ///< those that were kept are used
  };
  virtual ~ClassNetwork() = default;
  /// `input`: [rows, channels, height, width], float32 -> [rows, classes].
  virtual at::Tensor operator()(const at::Tensor& input, Mode mode) const = 0;
  virtual const Layers& layers() const = 0;
  /// From here on activations are computed again during backward; false where
  /// they were already.
  virtual bool begin_recompute() = 0;
};

/// A model of classes, whatever the network.
struct ClassifierOptions {
  std::string input;           ///< a tensor of the batch
  Shape shape;                 ///< of a row of it
  bool rows_last = false;      ///< [height, width, channels]
  std::int64_t channels = 0;   ///< that the network wants: one is repeated
  bool channels_last = false;  ///< how the network has its tensors in memory
  Target target;
  AnswerFacts answers;
  Learning learning;
  bool balance = false;   ///< measures of each class, too
  bool pictures = false;  ///< its input is pictures: the worst ones are shown
  Json description;       ///< of the network, for checkpoints
};
std::unique_ptr<Model> make_classifier(ClassifierOptions options,
                                       std::unique_ptr<ClassNetwork> network,
                                       at::Device device);

}  // namespace penstock
