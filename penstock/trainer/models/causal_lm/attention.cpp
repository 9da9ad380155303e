#include "penstock/trainer/models/causal_lm/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock {
namespace {

at::Tensor fused(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const at::Tensor& mask) {
  std::optional<at::Tensor> seen;
  if (mask.defined()) seen = mask;
  // A query that stands behind all keys sees each of them.
  const bool causal = !mask.defined() && q.size(2) == k.size(2);
  return at::scaled_dot_product_attention(q, k, v, seen, 0, causal,
                                          std::nullopt, q.size(1) != k.size(1));
}

}  // namespace

// [rows, 1, length, length]: a token sees itself and the tokens before it in
// its own document, so documents of one row do not see each other.
at::Tensor mask_of(const at::Tensor& documents) {
  const std::int64_t length = documents.size(1);
  at::Tensor place = at::arange(length, documents.options());
  at::Tensor before = place.unsqueeze(1).ge(place.unsqueeze(0));
  at::Tensor same = documents.unsqueeze(2).eq(documents.unsqueeze(1));
  return same.logical_and(before).unsqueeze(1);
}

// softmax(q k^T / sqrt(head)) v of each head. With bounds, each document is a
// call of its own: length^2 of each instead of the square of the row, at the
// price of more calls. Fewer groups of keys than heads (grouped queries) are
// left to the kernel.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const Sight& sight) {
  if (sight.bounds.empty())
    return fused(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                 sight.mask)
        .transpose(1, 2);
  auto flat = [](const at::Tensor& x) {
    return x.flatten(0, 1).transpose(0, 1).unsqueeze(0);
  };
  const at::Tensor all_q = flat(q), all_k = flat(k), all_v = flat(v);
  std::vector<at::Tensor> seen;
  for (std::size_t i = 0; i + 1 < sight.bounds.size(); ++i) {
    const std::int64_t begin = sight.bounds[i], end = sight.bounds[i + 1];
    if (begin == end) continue;
    auto piece = [&](const at::Tensor& x) { return x.slice(2, begin, end); };
    seen.push_back(fused(piece(all_q), piece(all_k), piece(all_v), {}));
  }
  return at::cat(seen, 2).squeeze(0).transpose(0, 1).reshape(q.sizes());
}

// In float32, as the models were trained.
// Rotary embeddings (Su et al. 2021): pair i of a head turns by position times
// theta^(-2i / head). With a factor, all positions are divided by it. Bands are
// Llama 3.1's rule: a pair that makes more than `high` turns within the
// original length is kept, one of fewer than `low` is slowed by the factor, and
// between them both are mixed in proportion.
at::Tensor frequencies_of(const DecoderConfig::Rope& rope, std::int64_t head) {
  at::Tensor all = at::empty({head / 2}, at::kFloat);
  auto* value = all.mutable_data_ptr<float>();
  const auto theta = static_cast<float>(rope.theta);
  const auto factor = static_cast<float>(rope.factor);
  for (std::int64_t i = 0; i < head / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head);
    const float turns = 1.0F / std::pow(theta, exponent);
    if (!rope.bands) {
      value[i] = turns / factor;
      continue;
    }
    const auto low = static_cast<float>(rope.bands->low);
    const auto high = static_cast<float>(rope.bands->high);
    const auto within = static_cast<float>(rope.bands->length) * turns /
                        (2 * std::numbers::pi_v<float>);
    const float kept = std::clamp((within - low) / (high - low), 0.0F, 1.0F);
    value[i] = (1 - kept) * turns / factor + kept * turns;
  }
  return all;
}

Turns turns_of(const at::Tensor& frequencies, const at::Tensor& positions) {
  at::Tensor angle =
      positions.to(at::kFloat).unsqueeze(-1) * frequencies;  // [.., head / 2]
  at::Tensor both = at::cat({angle, angle}, -1).unsqueeze(2);
  return {both.cos(), both.sin()};
}

// The pairs are (x_i, x_(i + head / 2)), the two halves of a head, as in the
// weights of Hugging Face, and not neighbours as in the paper.
at::Tensor turned(const at::Tensor& x, const Turns& turns) {
  const std::int64_t half = x.size(-1) / 2;
  at::Tensor other =
      at::cat({x.slice(-1, half).neg(), x.slice(-1, 0, half)}, -1);
  return (x * turns.cosine + other * turns.sine).to(x.scalar_type());
}

}  // namespace penstock
