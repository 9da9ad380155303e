#include "penstock/trainer/models/set_position/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "penstock/base/error.h"
#include "penstock/base/random.h"

namespace penstock {
namespace {

constexpr std::uint64_t kFirstWeight = 0x77656967687473;
constexpr std::int64_t kAnswers = 3;
// Finite: where everything is absent the shares are equal, not NaN.
constexpr double kUnseen = -1e9;

// Uniform, with a variance of 1 / in, drawn on the host by their place.
at::Tensor first_weights(std::uint64_t seed, std::size_t parameter,
                         std::int64_t out, std::int64_t in) {
  at::Tensor weights = at::empty({out, in}, at::kDouble);
  double* value = weights.mutable_data_ptr<double>();
  double bound = std::sqrt(3.0 / static_cast<double>(in));
  for (std::int64_t row = 0; row < out; ++row) {
    Random random(seed, parameter, static_cast<std::uint64_t>(row),
                  kFirstWeight);
    for (std::int64_t i = 0; i < in; ++i)
      *value++ = bound * (2 * random.uniform() - 1);
  }
  return weights;
}

}  // namespace

SetNetwork::SetNetwork(const NetworkShape& shape, std::uint64_t seed,
                       const at::TensorOptions& options)
    : shape_(shape), seed_(seed), options_(options) {
  PENSTOCK_ASSERT(shape.width % kHeads == 0, "each head has as many numbers");
  std::int64_t width = shape.width;
  embed_ = linear("embed", shape.inputs, width);
  embed_out_ = linear("embed_out", width, width);
  attention_norm_ = normal("attention.norm");
  queries_keys_values_ = linear("attention.in", width, 3 * width);
  attention_out_ = linear("attention.out", width, width);
  mlp_norm_ = normal("mlp.norm");
  mlp_ = linear("mlp.in", width, 2 * width);
  mlp_out_ = linear("mlp.out", 2 * width, width);
  pool_norm_ = normal("pool.norm");
  pool_scores_ = linear("pool.scores", width, kHeads);
  pool_values_ = linear("pool.values", width, width);
  head_norm_ = normal("head.norm");
  head_ = linear("head", width, width);
  answer_ = linear("answer", width, kAnswers);
  parameters_[answer_.weight].value.detach().zero_();
}

std::size_t SetNetwork::add(const std::string& name, at::Tensor value) {
  parameters_.push_back({name, value.to(options_).requires_grad_()});
  return parameters_.size() - 1;
}

SetNetwork::Layer SetNetwork::linear(const std::string& name, std::int64_t in,
                                     std::int64_t out) {
  std::size_t weight =
      add(name + ".weight", first_weights(seed_, parameters_.size(), out, in));
  return {weight, add(name + ".bias", at::zeros({out}))};
}

SetNetwork::Layer SetNetwork::normal(const std::string& name) {
  std::size_t weight = add(name + ".weight", at::ones({shape_.width}));
  return {weight, add(name + ".bias", at::zeros({shape_.width}))};
}

at::Tensor SetNetwork::apply(Layer layer, const at::Tensor& input) const {
  return at::linear(input, parameters_[layer.weight].value,
                    parameters_[layer.bias].value);
}

at::Tensor SetNetwork::normalised(Layer layer, const at::Tensor& input) const {
  return at::layer_norm(input, {shape_.width}, parameters_[layer.weight].value,
                        parameters_[layer.bias].value);
}

// Every element attends to every element that is present.
at::Tensor SetNetwork::attention(const at::Tensor& elements,
                                 const at::Tensor& absent) const {
  std::int64_t rows = elements.size(0);
  std::int64_t max = elements.size(1);
  std::int64_t each = shape_.width / kHeads;
  at::Tensor all = apply(queries_keys_values_, elements)
                       .view({rows, max, 3, kHeads, each})
                       .permute({2, 0, 3, 1, 4});  // 3, rows, heads, max, each
  at::Tensor scores = at::matmul(all[0], all[1].transpose(2, 3)) *
                      (1 / std::sqrt(static_cast<double>(each)));
  at::Tensor shares =
      scores.masked_fill(absent.view({rows, 1, 1, max}), kUnseen).softmax(3);
  at::Tensor seen = at::matmul(shares, all[2]).transpose(1, 2);
  return apply(attention_out_, seen.reshape({rows, max, shape_.width}));
}

// One learned query per head attends to all elements that are present.
at::Tensor SetNetwork::pooled(const at::Tensor& elements,
                              const at::Tensor& absent) const {
  std::int64_t rows = elements.size(0);
  std::int64_t max = elements.size(1);
  std::int64_t each = shape_.width / kHeads;
  at::Tensor shares = apply(pool_scores_, elements)
                          .masked_fill(absent.unsqueeze(2), kUnseen)
                          .softmax(1);  // rows, max, heads
  at::Tensor values =
      apply(pool_values_, elements).view({rows, max, kHeads, each});
  return (shares.unsqueeze(3) * values).sum(1).view({rows, shape_.width});
}

at::Tensor SetNetwork::operator()(const at::Tensor& elements,
                                  const at::Tensor& mask) const {
  at::Tensor absent = mask.eq(0);
  at::Tensor at_hand = apply(embed_out_, at::gelu(apply(embed_, elements)));
  at_hand = at_hand + attention(normalised(attention_norm_, at_hand), absent);
  at_hand =
      at_hand +
      apply(mlp_out_, at::gelu(apply(mlp_, normalised(mlp_norm_, at_hand))));
  at::Tensor set = pooled(normalised(pool_norm_, at_hand), absent);
  set = set + at::gelu(apply(head_, normalised(head_norm_, set)));
  return apply(answer_, set);
}

}  // namespace penstock
