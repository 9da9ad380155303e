#include "penstock/loader/ring_bytes.h"

#include <algorithm>

#include "penstock/loader/batch_operations.h"

namespace penstock {

StreamBytes stream_bytes(const DatasetFacts& facts, Side side) {
  StreamBytes most;  // fields take turns
  for (const DeviceField& field : facts.device_fields_of(side)) {
    most.device = std::max(most.device, field.stream_bytes.device);
    most.pinned = std::max(most.pinned, field.stream_bytes.pinned);
    most.of_all_streams =
        std::max(most.of_all_streams, field.stream_bytes.of_all_streams);
  }
  return most;
}

std::size_t decoder_bytes(const DatasetFacts& facts) {
  return std::max(stream_bytes(facts, Side::train).of_all_streams,
                  stream_bytes(facts, Side::val).of_all_streams);
}

RingBytes ring_bytes(const LoaderOptions& options, const DatasetFacts& facts) {
  const BatchOperations operations(options, facts);
  const std::int64_t batch = most_rows(options, facts.rows);
  BatchLayout most =
      most_bytes(facts, options.side, operations.tensors(), batch);
  if (options.batch_bytes > 0 && most.tensors > options.batch_bytes) {
    std::size_t beyond = most.tensors - options.batch_bytes;
    most.bytes -= beyond;
    most.copied -= std::min(most.copied, beyond);
  }
  most.scratch = std::max(most.scratch, operations.scratch_bytes(batch));
  const auto slots = static_cast<std::size_t>(slots_of(options));
  // Of each worker, and of the caller.
  const auto streams = static_cast<std::size_t>(resolved(options).workers) + 1;
  const StreamBytes held = stream_bytes(facts, options.side);
  return {.device = slots * (most.bytes + most.scratch) + streams * held.device,
          .host = slots * most.copied + streams * held.pinned};
}

}  // namespace penstock
