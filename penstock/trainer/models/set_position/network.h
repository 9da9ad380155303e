#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "penstock/trainer/layers.h"

namespace penstock {

/// Sizes of a SetNetwork.
struct NetworkShape {
  std::int64_t inputs = 0;  ///< numbers per element
  std::int64_t width = 64;  ///< of all layers; a multiple of kHeads
};

/// A network on sets: its output does not depend on the order of a set's
/// elements, nor on what follows them in memory.
///
/// Each element goes through the same layers, attends to the others, and the
/// set is pooled by attention with learned queries, one per head. Elements
/// whose mask is 0 are ignored; an empty set gives some finite numbers.
class SetNetwork {
 public:
  static constexpr std::int64_t kHeads = 4;

  /// The first weights depend on `seed` alone, whatever the device. Before
  /// anything is learned, every answer is 0.
  SetNetwork(const NetworkShape& shape, std::uint64_t seed,
             const at::TensorOptions& options);

  /// [rows, max, inputs] and [rows, max] -> [rows, 3].
  at::Tensor operator()(const at::Tensor& elements,
                        const at::Tensor& mask) const;

  /// In a fixed order. They share memory with the network.
  const std::vector<Parameter>& parameters() const {
    return layers_.parameters();
  }

 private:
  using Layer = Layers::Layer;
  at::Tensor attention(const at::Tensor& elements,
                       const at::Tensor& absent) const;
  at::Tensor pooled(const at::Tensor& elements, const at::Tensor& absent) const;

  NetworkShape shape_;
  Layers layers_;
  Layer embed_, embed_out_, attention_norm_, queries_keys_values_,
      attention_out_, mlp_norm_, mlp_, mlp_out_, pool_norm_, pool_scores_,
      pool_values_, head_norm_, head_, answer_;
};

}  // namespace penstock
