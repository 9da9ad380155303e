#pragma once

#include <cstdint>

#include "penstock/base/tensor.h"

namespace penstock {

template <class Number>
struct Typed {
  using type = Number;
};

/// Calls `work` with the C++ type of a dtype's elements, as a Typed.
template <class Work>
auto with_number(Dtype dtype, Work work) {
  switch (dtype) {
    case Dtype::float32:
      return work(Typed<float>());
    case Dtype::int64:
      return work(Typed<std::int64_t>());
    case Dtype::boolean:
    case Dtype::uint8:
      return work(Typed<std::uint8_t>());
    case Dtype::int8:
      return work(Typed<std::int8_t>());
    case Dtype::int16:
      return work(Typed<std::int16_t>());
    case Dtype::uint16:
      return work(Typed<std::uint16_t>());
    case Dtype::int32:
      return work(Typed<std::int32_t>());
    case Dtype::uint32:
      return work(Typed<std::uint32_t>());
    case Dtype::uint64:
      return work(Typed<std::uint64_t>());
    default:
      break;
  }
  return work(Typed<double>());
}

}  // namespace penstock
