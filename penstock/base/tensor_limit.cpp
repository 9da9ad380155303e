#include "penstock/base/tensor_limit.h"

namespace penstock {

std::atomic<std::size_t>& tensor_limit() {
  static constinit std::atomic<std::size_t> limit{SIZE_MAX};
  return limit;
}

}  // namespace penstock
