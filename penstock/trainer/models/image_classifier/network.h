#pragma once

#include <memory>

#include "penstock/models/image_classifier/descriptor.h"
#include "penstock/trainer/classifier.h"

namespace penstock {

struct ImageNetworkOptions {
  ImageClassifier settings;
  std::int64_t classes = 1000;
  std::int64_t height = 224, width = 224;  ///< of the pictures
  Dtype precision = Dtype::float32;
  bool recompute = false;  ///< blocks, for their gradients
};

/// A network of torchvision 0.26 (resnet.py, vision_transformer.py; He et al.,
/// 2016; Dosovitskiy et al., 2021), with its names and its numbers. Its input
/// has 3 channels. Of `files` (null: weights are drawn) the last layer is not
/// taken where it is of other classes.
std::unique_ptr<ClassNetwork> make_image_network(
    const ImageNetworkOptions& options, const at::TensorOptions& where,
    const std::shared_ptr<const WeightFiles>& files);

}  // namespace penstock
