#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "penstock/advisor/tuned_pipeline.h"
#include "penstock/base/random.h"

namespace penstock {

/// A pipeline of 2 to 5 stages on 2 to 16 processors, with one thread each.
inline Pipeline pipeline_to_tune(std::uint64_t seed) {
  Random random(seed, 0, 0, 0);
  auto one_of = [&](std::vector<double> values) {
    const double at = random.uniform() * static_cast<double>(values.size());
    return values[static_cast<std::size_t>(at)];
  };
  Pipeline pipeline;
  const int stages = static_cast<int>(one_of({2, 3, 4, 5}));
  pipeline.cpus = std::max(stages, static_cast<int>(one_of({2, 4, 8, 12, 16})));
  pipeline.step_ms = 10;
  pipeline.batches = 1500;
  pipeline.seed = static_cast<std::int64_t>(seed);
  for (int i = 0; i < stages; ++i)
    pipeline.stages.push_back({.name = "stage" + std::to_string(i),
                               .service_ms = 2 * std::pow(25, random.uniform()),
                               .cv = one_of({0, 0.3, 1}),
                               .workers = 1,
                               .queue = static_cast<int>(one_of({2, 4, 8})),
                               .scaling = one_of({1, 1, 0.8})});
  return pipeline;
}

inline int workers_of(const Pipeline& pipeline) {
  int sum = 0;
  for (const PipelineStage& stage : pipeline.stages) sum += stage.workers;
  return sum;
}

/// The rate with the best numbers of workers within the budget, and the deepest
/// queues. No pipeline is faster than its slowest stage, so that only those are
/// simulated which could still be better than the best so far.
inline double best_rate(const Pipeline& pipeline) {
  std::vector<std::pair<double, Pipeline>> all;
  Pipeline tried = pipeline;
  for (PipelineStage& stage : tried.stages) stage.queue = Tuner::kDeepest;
  auto add = [&](auto&& self, std::size_t at, int left, double bound) -> void {
    if (at == tried.stages.size()) {
      all.emplace_back(bound, tried);
      return;
    }
    PipelineStage& stage = tried.stages[at];
    const int others = static_cast<int>(tried.stages.size() - at) - 1;
    for (int workers = 1; workers <= left - others; ++workers) {
      stage.workers = workers;
      const double rate = std::pow(workers, stage.scaling) / stage.service_ms;
      self(self, at + 1, left - workers, std::min(bound, 1e3 * rate));
    }
  };
  add(add, 0, pipeline.cpus, 1e3 / pipeline.step_ms);
  std::ranges::sort(all, [](auto& a, auto& b) { return a.first > b.first; });
  double best = 0;
  constexpr std::size_t kMost = 40;  // of equals the first ones will do
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) {
    if (all[i].first <= best) break;
    best = std::max(best, rate_of(simulate(all[i].second)));
  }
  return best;
}

}  // namespace penstock
