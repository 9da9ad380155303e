#include "penstock/trainer/drawn.h"

#include <ATen/ops/empty.h>

namespace penstock {

at::Tensor drawn(const at::Tensor& like, std::int64_t numbers,
                 std::uint64_t seed, const DrawnFor& rows,
                 std::uint64_t purpose, const DrawRow& draw) {
  PENSTOCK_ASSERT(like.size(0) == std::ssize(rows.ids),
                  "each row has its sample");
  at::Tensor tensor =
      at::empty({like.size(0), numbers}, like.options().dtype(at::kFloat));
  auto* there = static_cast<std::byte*>(tensor.mutable_data_ptr());
  std::byte* here = like.is_cpu() ? there : rows.staging.room(tensor.nbytes());
  const auto each = static_cast<std::size_t>(numbers);
  auto* row = reinterpret_cast<float*>(here);
  // Keyed by the sample and not by its place in the batch: the same whatever
  // the order, the batch size and the rank.
  for (SampleId id : rows.ids) {
    Random random(seed, static_cast<std::uint64_t>(rows.epoch),
                  static_cast<std::uint64_t>(id), purpose);
    draw(random, {row, each});
    row += each;
  }
  if (!like.is_cpu()) rows.staging.send(there, tensor.nbytes(), rows.stream);
  return tensor;
}

}  // namespace penstock
