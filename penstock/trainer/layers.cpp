#include "penstock/trainer/layers.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "penstock/base/random.h"

namespace penstock {
namespace {

constexpr std::uint64_t kFirstWeight = 0x77656967687473;

}  // namespace

// Uniform, with a variance of 1 / in, drawn on the host by their place.
at::Tensor Layers::first_weights(std::int64_t out, std::int64_t in) const {
  at::Tensor weights = at::empty({out, in}, at::kDouble);
  double* value = weights.mutable_data_ptr<double>();
  double bound = std::sqrt(3.0 / static_cast<double>(in));
  for (std::int64_t row = 0; row < out; ++row) {
    Random random(seed_, parameters_.size(), static_cast<std::uint64_t>(row),
                  kFirstWeight);
    for (std::int64_t i = 0; i < in; ++i)
      *value++ = bound * (2 * random.uniform() - 1);
  }
  return weights;
}

std::size_t Layers::add(const std::string& name, at::Tensor value) {
  parameters_.push_back({name, value.to(options_).requires_grad_()});
  return parameters_.size() - 1;
}

Layers::Layer Layers::linear(const std::string& name, std::int64_t in,
                             std::int64_t out) {
  std::size_t weight = add(name + ".weight", first_weights(out, in));
  return {weight, add(name + ".bias", at::zeros({out}))};
}

Layers::Layer Layers::normal(const std::string& name, std::int64_t width) {
  std::size_t weight = add(name + ".weight", at::ones({width}));
  return {weight, add(name + ".bias", at::zeros({width}))};
}

std::size_t Layers::table(const std::string& name, std::int64_t rows,
                          std::int64_t width) {
  return add(name + ".weight", first_weights(rows, width));
}

void Layers::zero(Layer layer) {
  parameters_[layer.weight].value.detach().zero_();
}

at::Tensor Layers::apply(Layer layer, const at::Tensor& input) const {
  return at::linear(input, parameters_[layer.weight].value,
                    parameters_[layer.bias].value);
}

at::Tensor Layers::normalised(Layer layer, const at::Tensor& input) const {
  return at::layer_norm(input, {input.size(-1)},
                        parameters_[layer.weight].value,
                        parameters_[layer.bias].value);
}

at::Tensor Layers::rows_of(std::size_t table, const at::Tensor& classes) const {
  return at::embedding(parameters_[table].value, classes);
}

}  // namespace penstock
