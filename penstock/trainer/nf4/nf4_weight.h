#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "penstock/session/session.h"

namespace penstock {

/// A weight [out, in] of four bits on a device; models/nf4/nf4.h has the
/// format. Never learned.
struct Nf4Weight {
  at::Tensor codes;                      ///< uint8, [bytes]
  at::Tensor scales;                     ///< float32: of weights, or of scales
  at::Tensor scale_codes, scale_values;  ///< uint8, float32; or both undefined
  double mean = 0;                       ///< which nested scales are without
  std::int64_t out = 0, in = 0;
  at::ScalarType dtype = at::kFloat;  ///< which it had before

  bool nested() const { return scale_codes.defined(); }
  std::int64_t size() const { return out * in; }
  std::int64_t bytes() const;  ///< of all its tensors
};

/// Quantised on the host, so that the codes are the same on every device.
/// `weight`: [out, in] there, of any floating type. `nested`: the scales have
/// eight bits.
Nf4Weight nf4_weight(const at::Tensor& weight, bool nested, at::Device device);
/// Copied as it was written.
Nf4Weight nf4_weight(const Nf4Parts& parts, at::Device device);

/// [out, in] of its `dtype`, by the functions that define it, with libtorch's
/// threads.
at::Tensor dequantized_on_host(const Nf4Weight& weight);

/// The scales of its weights, float32, [blocks].
at::Tensor weight_scales(const Nf4Weight& weight);

/// The same by operations of libtorch, on any device. They need nine bytes for
/// each weight while they run.
at::Tensor dequantized_by_operations(const Nf4Weight& weight);

}  // namespace penstock
