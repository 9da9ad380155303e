#include "penstock/loader/ring_bytes.h"

#include <algorithm>

#include "penstock/loader/batch_operations.h"

namespace penstock {

std::size_t stream_bytes(const DatasetInfo& info, Side side) {
  std::size_t most = 0;  // fields take turns
  for (const DeviceField& field : info.device_fields_of(side))
    most = std::max(most, field.stream_bytes);
  return most;
}

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
  // Of each worker, and of the caller.
  const std::size_t streams =
      stream_bytes(info, options.side) *
      (static_cast<std::size_t>(resolved(options).workers) + 1);
  return {.device = slots * (most.bytes + most.scratch) + streams,
          .host = slots * most.copied + 2 * streams};
}

}  // namespace penstock
