#pragma once

#include <cstdint>
#include <string>

#include "penstock/models/model.h"

namespace penstock {

/// The class of a picture.
struct ImageClassifier {
  enum class Network : std::uint8_t { resnet18, resnet50, vit_s16 };

  std::string image;   ///< a field of kind `image`, or of numbers like it
  std::string target;  ///< a category
  Network network = Network::resnet18;
  bool channels_last = true;  ///< how tensors lie in memory
  std::uint64_t seed = 0;     ///< of the first weights
};

ModelKind image_classifier_model();

/// The settings of a model of this kind; an internal error for another kind's.
const ImageClassifier& image_classifier_of(const ModelSpec& model);

}  // namespace penstock
