#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "penstock/trainer/drawn.h"

namespace penstock {

/// Augments a set: another time, some of its receivers would not have heard the
/// transmission, and the others not as strongly. Without this, a network
/// memorises its few thousand rows and is far too sure of itself.
///
/// What is drawn depends only on the seed, the epoch and the rows' samples, so
/// a step is the same whenever it is taken.
struct ReceiverAugment {
  double dropout = 0;  ///< share of the receivers that are left out
  double noise = 0;    ///< deviation of what is added to strengths, in the
                       ///< units of the set: standardised, if it is
  std::uint64_t seed = 0;

  /// `mask` [rows, max] with some of its ones made 0. A row keeps all that it
  /// has rather than none.
  at::Tensor heard(const at::Tensor& mask, const DrawnFor& rows) const;
  /// `set` [rows, max, keys] with noise on the numbers of one key.
  at::Tensor noisy(const at::Tensor& set, std::int64_t key,
                   const DrawnFor& rows) const;
};

}  // namespace penstock
