#include "penstock/trainer/outcomes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

namespace penstock {

void Outcomes::add(const BatchOutcomes& batch) {
  const at::Tensor loss = batch.loss.to(at::kDouble);
  const std::size_t rows =
      samples_.size() + static_cast<std::size_t>(loss.size(0));
  samples_.insert(samples_.end(), batch.samples.begin(), batch.samples.end());
  samples_.resize(rows, -1);
  auto exact = [&](const at::Tensor& each) {
    return each.defined() ? each.to(at::kDouble) : at::zeros_like(loss);
  };
  seen_.push_back(
      at::stack({loss, exact(batch.truth), exact(batch.guess),
                 exact(batch.score), exact(batch.before), exact(batch.weight)},
                1));
}

std::vector<Outcome> Outcomes::take() {
  std::vector<Outcome> rows;
  if (seen_.empty()) return rows;
  const at::Tensor all = at::cat(seen_, 0).to(at::kCPU).contiguous();
  seen_.clear();
  const std::vector<SampleId> samples = std::exchange(samples_, {});
  const double* row = all.const_data_ptr<double>();
  for (std::int64_t i = 0; i < all.size(0); ++i, row += all.size(1))
    if (row[5] != 0)
      rows.push_back({.loss = row[0],
                      .truth = row[1],
                      .guess = row[2],
                      .score = row[3],
                      .before = row[4],
                      .sample = samples[static_cast<std::size_t>(i)]});
  return rows;
}

}  // namespace penstock
