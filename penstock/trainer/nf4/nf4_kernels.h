#pragma once

#include <memory>
#include <string>

#include "penstock/trainer/nf4/nf4_weight.h"

namespace penstock {

/// What dequantises on a GPU: the kernels of bitsandbytes, by their C names.
class Nf4Kernels {
 public:
  virtual ~Nf4Kernels() = default;
  /// As dequantized_by_operations(), queued on the current stream.
  virtual at::Tensor dequantized(const Nf4Weight& weight) const = 0;
};

/// Those that fit this device, once they have given the same bits as the
/// definition does; null: this machine has no such library. The first call
/// looks for the library: PENSTOCK_BITSANDBYTES, else `bitsandbytes/` next to
/// the torch that is loaded. The log says what is used and why.
const Nf4Kernels* nf4_kernels(at::Device device);

/// The kernels of a library. Throws Error(device), code trainer.nf4_kernels,
/// where it cannot be opened or lacks a kernel.
std::unique_ptr<Nf4Kernels> open_nf4_kernels(const std::string& library);

/// The first weight that `kernels` dequantise to other bits than the
/// definition, in words; empty: none of those that are tried.
std::string other_bits(const Nf4Kernels& kernels, at::Device device);

}  // namespace penstock
