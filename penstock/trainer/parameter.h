#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace penstock {

/// A tensor that is learned.
struct Parameter {
  std::string name;
  at::Tensor value;
};

}  // namespace penstock
