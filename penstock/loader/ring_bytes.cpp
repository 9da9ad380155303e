#include "penstock/loader/ring_bytes.h"

#include <algorithm>

#include "penstock/loader/batch_operations.h"

namespace penstock {

RingBytes ring_bytes(const LoaderOptions& options, const DatasetInfo& info) {
  const BatchOperations operations(options, info);
  const std::int64_t batch = most_rows(options, info.rows);
  BatchLayout most =
      most_bytes(info, options.side, operations.tensors(), batch);
  if (options.batch_bytes > 0 && most.tensors > options.batch_bytes) {
    std::size_t beyond = most.tensors - options.batch_bytes;
    most.bytes -= beyond;
    most.copied -= std::min(most.copied, beyond);
  }
  most.scratch = std::max(most.scratch, operations.scratch_bytes(batch));
  const auto slots = static_cast<std::size_t>(slots_of(options));
  return {.device = slots * (most.bytes + most.scratch),
          .host = slots * most.copied};
}

}  // namespace penstock
