#include "penstock/trainer/counted_rows.h"

#include <ATen/ops/empty.h>

#include <cstring>

namespace penstock {
namespace {

std::vector<std::int64_t> counted_in(const BatchRows& batch) {
  const std::span<const SampleId> ids = batch.ids();
  std::vector<bool> counts(ids.size());
  for (std::size_t row = 0; row < ids.size(); ++row)
    counts[row] = ids[row] >= 0;
  for (const RejectedSample& bad : batch.rejected())
    if (bad.substitute < 0) counts[static_cast<std::size_t>(bad.row)] = false;
  std::vector<std::int64_t> counted;
  for (std::size_t row = 0; row < counts.size(); ++row)
    if (counts[row]) counted.push_back(static_cast<std::int64_t>(row));
  return counted;
}

}  // namespace

CountedRows::CountedRows(const BatchRows& batch, const DrawnFor& rows,
                         at::Device device)
    : rows_(batch.rows()), counted_(counted_in(batch)) {
  PENSTOCK_ASSERT(std::ssize(batch.ids()) == rows_, "each row has its sample");
  const bool first_rows = none() || counted_.back() + 1 == std::ssize(counted_);
  if (first_rows) return;
  index_ = at::empty({std::ssize(counted_)},
                     at::TensorOptions(at::kLong).device(device));
  auto* there = static_cast<std::byte*>(index_.mutable_data_ptr());
  std::byte* here =
      device.is_cpu() ? there : rows.staging.room(index_.nbytes());
  std::memcpy(here, counted_.data(), index_.nbytes());
  if (!device.is_cpu()) rows.staging.send(there, index_.nbytes(), rows.stream);
}

at::Tensor CountedRows::of(const at::Tensor& rows) const {
  if (!some()) return rows;
  return index_.defined() ? rows.index_select(0, index_)
                          : rows.narrow(0, 0, std::ssize(counted_));
}

}  // namespace penstock
