#include "penstock/trainer/models/tabular/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>

namespace penstock {

TabularNetwork::TabularNetwork(const TabularShape& shape, std::uint64_t seed,
                               const at::TensorOptions& options)
    : shape_(shape), layers_(seed, options) {
  std::int64_t inputs = shape.numbers;
  for (const TabularShape::Classes& category : shape.categories) {
    tables_.push_back(layers_.table("classes." + category.name, category.count,
                                    category.width));
    inputs += category.width;
  }
  embed_ = layers_.linear("embed", inputs, shape.width);
  for (std::int64_t i = 0; i < shape.depth; ++i) {
    const std::string name = "block" + std::to_string(i);
    BlockLayers block;
    block.norm = layers_.normal(name + ".norm", shape.width);
    block.in = layers_.linear(name + ".in", shape.width, shape.width);
    block.out = layers_.linear(name + ".out", shape.width, shape.width);
    blocks_.push_back(block);
  }
  norm_ = layers_.normal("norm", shape.width);
  answer_ = layers_.linear("answer", shape.width, shape.answers);
  layers_.zero(answer_);
}

at::Tensor TabularNetwork::operator()(const std::vector<at::Tensor>& classes,
                                      const at::Tensor& numbers,
                                      const at::Tensor& kept) const {
  std::vector<at::Tensor> inputs;
  if (shape_.numbers > 0) inputs.push_back(numbers);
  for (std::size_t i = 0; i < tables_.size(); ++i)
    inputs.push_back(layers_.rows_of(tables_[i], classes[i]));
  at::Tensor at_hand = layers_.apply(
      embed_, inputs.size() == 1 ? inputs[0] : at::cat(inputs, 1));
  std::int64_t place = 0;
  for (const BlockLayers& block : blocks_) {
    at::Tensor inner = at::gelu(
        layers_.apply(block.in, layers_.normalised(block.norm, at_hand)));
    if (kept.defined())
      inner = inner * kept.slice(1, place, place + shape_.width);
    place += shape_.width;
    at_hand = at_hand + layers_.apply(block.out, inner);
  }
  return layers_.apply(answer_, at::gelu(layers_.normalised(norm_, at_hand)));
}

}  // namespace penstock
