#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "penstock/models/causal_lm/config.h"

namespace penstock {

/// Which tokens of a batch see which: those before them in their document.
struct Sight {
  /// Bool, [rows, 1, length, length]: token i sees token j.
  at::Tensor mask;
  /// Where documents begin and end in the rows one after the other, in place of
  /// a mask; without either, each row is one document.
  std::vector<std::int64_t> bounds;
};

/// That of rows whose tokens have these documents, int64, [rows, length].
at::Tensor mask_of(const at::Tensor& documents);

/// The fused kernel of libtorch: softmax(q k / sqrt(head)) v. `q`: [rows,
/// length, heads, head]; `k`, `v`: [rows, length, groups, head] -> as q. One
/// query of a row may stand behind more keys.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const Sight& sight);

/// How positions turn pairs of numbers: cosines and sines, float32.
struct Turns {
  at::Tensor cosine, sine;  // [rows, length, 1, head]
};
/// Turns per position, float32, [head / 2], on the host.
at::Tensor frequencies_of(const DecoderConfig::Rope& rope, std::int64_t head);
/// `positions`: int64, [rows, length]; `frequencies` where they are.
Turns turns_of(const at::Tensor& frequencies, const at::Tensor& positions);
/// `x`: [rows, length, heads, head], which keeps its type.
at::Tensor turned(const at::Tensor& x, const Turns& turns);

}  // namespace penstock
