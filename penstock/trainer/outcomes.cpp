#include "penstock/trainer/outcomes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kBatchesThere = 256;  // before they are fetched

}  // namespace

// Where memory is short, nothing is added.
void Outcomes::add(const BatchOutcomes& batch) {
  if (seen_.size() == kBatchesThere) fetch();
  const at::Tensor loss = batch.loss.to(at::kFloat);
  auto alike = [&](const at::Tensor& of) {
    return of.defined() ? of.to(at::kFloat) : at::zeros_like(loss);
  };
  seen_.push_back(
      at::stack({loss, alike(batch.truth), alike(batch.guess),
                 alike(batch.score), alike(batch.before), alike(batch.weight)},
                1));
  const std::size_t rows =
      samples_.size() + static_cast<std::size_t>(loss.size(0));
  samples_.insert(samples_.end(), batch.samples.begin(), batch.samples.end());
  samples_.resize(rows, -1);
}

void Outcomes::fetch() {
  if (seen_.empty()) return;
  const at::Tensor all = at::cat(seen_, 0).to(at::kCPU).contiguous();
  seen_.clear();
  const std::vector<SampleId> samples = std::exchange(samples_, {});
  const float* row = all.const_data_ptr<float>();
  for (std::int64_t i = 0; i < all.size(0); ++i, row += all.size(1))
    if (row[5] != 0)
      rows_.push_back({.loss = row[0],
                       .truth = row[1],
                       .guess = row[2],
                       .score = row[3],
                       .before = row[4],
                       .sample = samples[static_cast<std::size_t>(i)]});
}

std::vector<Outcome> Outcomes::take() {
  fetch();
  return std::exchange(rows_, {});
}

}  // namespace penstock
