#include "penstock/trainer/models/set_position/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>

#include <cmath>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kAnswers = 3;
// Finite: where everything is absent the shares are equal, not NaN.
constexpr double kUnseen = -3e4;  // which float16 holds

}  // namespace

// No layer knows the order of the elements, so the answer is the same for any:
// one block of a transformer without positions, then pooling by attention (as
// in Lee et al. 2019, "Set Transformer"). The answer begins at 0: the centroid,
// and a deviation of one unit.
SetNetwork::SetNetwork(const NetworkShape& shape, std::uint64_t seed,
                       const at::TensorOptions& options)
    : shape_(shape), layers_(seed, options) {
  PENSTOCK_ASSERT(shape.width % kHeads == 0, "each head has as many numbers");
  std::int64_t width = shape.width;
  embed_ = layers_.linear("embed", shape.inputs, width);
  embed_out_ = layers_.linear("embed_out", width, width);
  attention_norm_ = layers_.normal("attention.norm", width);
  queries_keys_values_ = layers_.linear("attention.in", width, 3 * width);
  attention_out_ = layers_.linear("attention.out", width, width);
  mlp_norm_ = layers_.normal("mlp.norm", width);
  mlp_ = layers_.linear("mlp.in", width, 2 * width);
  mlp_out_ = layers_.linear("mlp.out", 2 * width, width);
  pool_norm_ = layers_.normal("pool.norm", width);
  pool_scores_ = layers_.linear("pool.scores", width, kHeads);
  pool_values_ = layers_.linear("pool.values", width, width);
  head_norm_ = layers_.normal("head.norm", width);
  head_ = layers_.linear("head", width, width);
  answer_ = layers_.linear("answer", width, kAnswers);
  layers_.zero(answer_);
}

// Every element attends to every element that is present.
at::Tensor SetNetwork::attention(const at::Tensor& elements,
                                 const at::Tensor& absent) const {
  std::int64_t rows = elements.size(0);
  std::int64_t max = elements.size(1);
  std::int64_t each = shape_.width / kHeads;
  at::Tensor all = layers_.apply(queries_keys_values_, elements)
                       .view({rows, max, 3, kHeads, each})
                       .permute({2, 0, 3, 1, 4});  // 3, rows, heads, max, each
  at::Tensor scores = at::matmul(all[0], all[1].transpose(2, 3)) *
                      (1 / std::sqrt(static_cast<double>(each)));
  at::Tensor shares =
      scores.masked_fill(absent.view({rows, 1, 1, max}), kUnseen).softmax(3);
  at::Tensor seen = at::matmul(shares, all[2]).transpose(1, 2);
  return layers_.apply(attention_out_, seen.reshape({rows, max, shape_.width}));
}

// One learned query per head attends to all elements that are present.
at::Tensor SetNetwork::pooled(const at::Tensor& elements,
                              const at::Tensor& absent) const {
  std::int64_t rows = elements.size(0);
  std::int64_t max = elements.size(1);
  std::int64_t each = shape_.width / kHeads;
  at::Tensor shares = layers_.apply(pool_scores_, elements)
                          .masked_fill(absent.unsqueeze(2), kUnseen)
                          .softmax(1);  // rows, max, heads
  at::Tensor values =
      layers_.apply(pool_values_, elements).view({rows, max, kHeads, each});
  return (shares.unsqueeze(3) * values).sum(1).view({rows, shape_.width});
}

at::Tensor SetNetwork::operator()(const at::Tensor& elements,
                                  const at::Tensor& mask) const {
  at::Tensor absent = mask.eq(0);
  at::Tensor at_hand =
      layers_.apply(embed_out_, at::gelu(layers_.apply(embed_, elements)));
  at_hand =
      at_hand + attention(layers_.normalised(attention_norm_, at_hand), absent);
  at_hand = at_hand +
            layers_.apply(mlp_out_,
                          at::gelu(layers_.apply(
                              mlp_, layers_.normalised(mlp_norm_, at_hand))));
  at::Tensor set = pooled(layers_.normalised(pool_norm_, at_hand), absent);
  set =
      set + at::gelu(layers_.apply(head_, layers_.normalised(head_norm_, set)));
  return layers_.apply(answer_, set);
}

}  // namespace penstock
