#include "penstock/loader/ring_bytes.h"

#include <algorithm>

#include "penstock/loader/batch_operations.h"

namespace penstock {

std::size_t ring_bytes(const LoaderOptions& options,
                       const std::vector<Output>& outputs, std::int64_t rows,
                       std::span<const std::int32_t> longest) {
  const BatchOperations operations(options, outputs);
  const std::int64_t batch = most_rows(options, rows);
  std::size_t slot = most_bytes(operations.tensors(), longest, batch);
  if (options.batch_bytes > 0) slot = std::min(slot, options.batch_bytes);
  slot += operations.scratch_bytes(batch);
  return static_cast<std::size_t>(slots_of(options)) * slot;
}

}  // namespace penstock
