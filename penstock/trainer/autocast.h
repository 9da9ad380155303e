#pragma once

#include <ATen/core/Tensor.h>

#include "penstock/base/tensor.h"

namespace penstock {

/// While it lives, what this thread asks of libtorch on a device is computed in
/// `precision` where libtorch holds that to be safe: products of matrices are,
/// what follows them has their type. float32 changes nothing. For a network
/// alone: make its answers float32 before a loss is made of them.
class Autocast {
 public:
  Autocast(at::Device device, Dtype precision);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const at::DeviceType device_;
  const bool on_;
  bool was_on_ = false;
  at::ScalarType was_ = at::kFloat;
};

}  // namespace penstock
