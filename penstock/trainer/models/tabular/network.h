#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/trainer/layers.h"

namespace penstock {

/// Sizes of a TabularNetwork.
struct TabularShape {
  struct Classes {
    std::string name;
    std::int64_t count = 0;
    std::int64_t width = 0;  ///< of the vector that stands for a class
  };
  std::vector<Classes> categories;
  std::int64_t numbers = 0;  ///< of a row
  std::int64_t width = 128;  ///< of all layers
  std::int64_t depth = 3;    ///< residual blocks
  std::int64_t answers = 1;
};

/// A network on rows of classes and numbers: each class has a vector that is
/// learned, all stand beside the numbers, and residual blocks of two layers
/// follow.
class TabularNetwork {
 public:
  /// The first weights depend on `seed` alone, whatever the device. Before
  /// anything is learned, every answer is 0.
  TabularNetwork(const TabularShape& shape, std::uint64_t seed,
                 const at::TensorOptions& options);

  /// `classes`: int64 [rows] of each category; `numbers`: [rows, numbers];
  /// `kept`: [rows, depth x width], what is multiplied onto the inner numbers
  /// of the blocks, or undefined -> [rows, answers].
  at::Tensor operator()(const std::vector<at::Tensor>& classes,
                        const at::Tensor& numbers,
                        const at::Tensor& kept) const;

  /// In a fixed order. They share memory with the network.
  const std::vector<Parameter>& parameters() const {
    return layers_.parameters();
  }

 private:
  struct BlockLayers {
    Layers::Layer norm, in, out;
  };

  const TabularShape shape_;
  Layers layers_;
  std::vector<std::size_t> tables_;  // of each category
  Layers::Layer embed_, norm_, answer_;
  std::vector<BlockLayers> blocks_;
};

}  // namespace penstock
