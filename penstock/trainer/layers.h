#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/trainer/parameter.h"

namespace penstock {

/// The parameters of a network and the layers that they make. A network adds
/// its layers once and then applies them.
class Layers {
 public:
  /// Weight and bias, by their place among the parameters.
  struct Layer {
    std::size_t weight = 0, bias = 0;
  };

  /// The first weights depend on `seed` and on the order of the layers alone,
  /// whatever the device.
  Layers(std::uint64_t seed, const at::TensorOptions& options)
      : seed_(seed), options_(options) {}

  Layer linear(const std::string& name, std::int64_t in, std::int64_t out);
  Layer normal(const std::string& name, std::int64_t width);
  /// A vector of `width` numbers for each of `rows` classes; its place.
  std::size_t table(const std::string& name, std::int64_t rows,
                    std::int64_t width);
  /// Makes the weight of a layer 0: before anything is learned, it gives 0.
  void zero(Layer layer);

  at::Tensor apply(Layer layer, const at::Tensor& input) const;
  /// Over the last dimension.
  at::Tensor normalised(Layer layer, const at::Tensor& input) const;
  /// The vectors of a table that belong to `classes`, int64: [..., width].
  at::Tensor rows_of(std::size_t table, const at::Tensor& classes) const;

  /// In the order in which they were added. They share memory with the layers.
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  std::size_t add(const std::string& name, at::Tensor value);
  at::Tensor first_weights(std::int64_t out, std::int64_t in) const;

  std::uint64_t seed_;
  at::TensorOptions options_;
  std::vector<Parameter> parameters_;
};

}  // namespace penstock
