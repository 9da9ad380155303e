#include "penstock/trainer/drawn.h"

#include <ATen/ops/empty.h>

namespace penstock {

namespace {

at::Tensor room_for(const at::Tensor& like, std::int64_t numbers) {
  return at::empty({like.size(0), numbers}, like.options().dtype(at::kFloat));
}

void draw_into(const at::Tensor& tensor, std::uint64_t seed,
               const DrawnFor& rows, std::uint64_t purpose,
               const DrawRow& draw) {
  PENSTOCK_ASSERT(tensor.size(0) == std::ssize(rows.ids),
                  "each row has its sample");
  auto* there = static_cast<std::byte*>(tensor.mutable_data_ptr());
  std::byte* here =
      tensor.is_cpu() ? there : rows.staging.room(tensor.nbytes());
  const auto each = static_cast<std::size_t>(tensor.size(1));
  auto* row = reinterpret_cast<float*>(here);
  // Keyed by the sample and not by its place in the batch: the same whatever
  // the order, the batch size and the rank.
  for (SampleId id : rows.ids) {
    Random random(seed, static_cast<std::uint64_t>(rows.epoch),
                  static_cast<std::uint64_t>(id), purpose);
    draw(random, {row, each});
    row += each;
  }
  if (!tensor.is_cpu()) rows.staging.send(there, tensor.nbytes(), rows.stream);
}

}  // namespace

// Not filled: a kernel that wrote it would be part of the graph, and would
// write it in each replay.
at::Tensor FixedDraws::next(const at::Tensor& like, std::int64_t numbers,
                            std::uint64_t seed, std::uint64_t purpose,
                            const DrawRow& draw) {
  if (next_ == all_.size())
    all_.push_back({room_for(like, numbers), seed, purpose, draw});
  return all_[next_++].tensor;
}

void FixedDraws::draw(const DrawnFor& rows) const {
  for (const One& one : all_)
    draw_into(one.tensor, one.seed, rows, one.purpose, one.draw);
}

at::Tensor drawn(const at::Tensor& like, std::int64_t numbers,
                 std::uint64_t seed, const DrawnFor& rows,
                 std::uint64_t purpose, const DrawRow& draw) {
  if (rows.fixed != nullptr)
    return rows.fixed->next(like, numbers, seed, purpose, draw);
  at::Tensor tensor = room_for(like, numbers);
  draw_into(tensor, seed, rows, purpose, draw);
  return tensor;
}

}  // namespace penstock
