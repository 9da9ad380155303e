#include "penstock/advisor/trials.h"

#include <algorithm>
#include <cmath>

#include "penstock/advisor/thresholds.h"

namespace penstock {
namespace {

// At a variation of 1 the mean of so many times is known to within 1.3 %.
constexpr std::int64_t kFewest = 6000, kMost = 20'000;
constexpr double kAsGood = 0.005;  // less than the deepest queues give
constexpr double kNotNext = 1.2;   // of the others: not to be the next limit

double rate_of(const PipelineStage& stage) {
  return stage.workers / std::max(1e-9, stage.service_ms);
}

/// As many workers as the others need, or as there are processors for.
int enough_workers(const Pipeline& pipeline, std::size_t slowest) {
  double others = 1 / pipeline.step_ms;
  if (pipeline.copy_ms > 0) others = std::min(others, 1 / pipeline.copy_ms);
  int used = 0;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    used += pipeline.stages[i].workers;
    if (i != slowest) others = std::min(others, rate_of(pipeline.stages[i]));
  }
  const PipelineStage& stage = pipeline.stages[slowest];
  const int free = std::max(0, pipeline.cpus - used);
  const double enough = std::ceil(kNotNext * others * stage.service_ms);
  return static_cast<int>(
      std::clamp<double>(enough, stage.workers, stage.workers + free));
}

class Trial {
 public:
  explicit Trial(const Pipeline& now)
      : now_(now), rate_(penstock::rate_of(simulate(now))) {}

  double gain_of(const Pipeline& changed) const {
    return penstock::rate_of(simulate(changed)) / rate_ - 1;
  }

  void offer(const std::string& knob, int PipelineStage::*number,
             std::size_t stage, int to, std::string cost) {
    Pipeline changed = now_;
    PipelineStage& of = changed.stages[stage];
    const int from = std::exchange(of.*number, to);
    if (from == to) return;
    const double gain = gain_of(changed);
    if (gain < kSmallestGain) return;
    actions_.push_back({.knob = of.name + "." + knob,
                        .from = from,
                        .to = to,
                        .predicted_gain = gain,
                        .cost = std::move(cost)});
  }
  std::vector<Action> actions() && { return std::move(actions_); }

 private:
  const Pipeline& now_;
  const double rate_;
  std::vector<Action> actions_;
};

/// That gain as much as `most`, which no fewer gain more than.
/// A binary search: with the same draws for the same batches more workers are
/// never slower but for chance, which kAsGood covers.
int fewest_workers(const Pipeline& now, std::size_t stage, int most,
                   const Trial& trial) {
  const auto gain = [&](int workers) {
    Pipeline changed = now;
    changed.stages[stage].workers = workers;
    return trial.gain_of(changed);
  };
  int least = now.stages[stage].workers;
  if (least == most) return most;
  const double best = gain(most) - kAsGood;
  while (least < most) {
    const int middle = least + (most - least) / 2;
    if (gain(middle) >= best)
      most = middle;
    else
      least = middle + 1;
  }
  return least;
}

}  // namespace

Trials try_changes(Pipeline now, std::size_t slowest) {
  now.batches = std::clamp(now.batches, kFewest, kMost);
  Trial trial(now);
  Trials trials;
  const int workers = now.stages[slowest].workers;
  const int enough = enough_workers(now, slowest);
  const int fewest = fewest_workers(now, slowest, enough, trial);
  if (fewest > workers + 1)
    trial.offer("workers", &PipelineStage::workers, slowest, fewest,
                std::to_string(fewest - workers) + " more processors");
  if (fewest > workers)
    trial.offer("workers", &PipelineStage::workers, slowest, workers + 1,
                "one more processor");
  for (std::size_t i = 0; i < now.stages.size(); ++i) {
    const int places = now.stages[i].queue;
    trial.offer("queue", &PipelineStage::queue, i, 2 * places,
                "memory for " + std::to_string(places) + " more batches");
  }
  trials.actions = std::move(trial).actions();

  Pipeline faster = now;
  faster.stages[slowest].service_ms /= 2;
  trials.faster_stage = trial.gain_of(faster);
  if (now.delivery == Delivery::step) {
    Pipeline as_ready = now;
    as_ready.delivery = Delivery::completion;
    trials.without_order = trial.gain_of(as_ready);
  }
  return trials;
}

void deepen_queues(Pipeline& pipeline, int times, int most) {
  for (PipelineStage& stage : pipeline.stages)
    stage.queue = std::max(stage.queue, std::min(times * stage.queue, most));
}

// Doubles the depth up to `most`, and takes the first that gains nearly as much
// as the deepest: beyond, places only cost memory.
DeeperQueues deep_enough(Pipeline now, int most) {
  now.batches = std::clamp(now.batches, kFewest, kMost);
  const Trial trial(now);
  std::vector<DeeperQueues> tried;
  for (int times = 2;; times *= 2) {
    Pipeline deeper = now;
    deepen_queues(deeper, times, most);
    tried.push_back({times, trial.gain_of(deeper)});
    if (std::ranges::all_of(deeper.stages, [&](const PipelineStage& stage) {
          return stage.queue >= most;
        }))
      break;
  }
  return *std::ranges::find_if(tried, [&](const DeeperQueues& deeper) {
    return deeper.gain >= tried.back().gain - kAsGood;
  });
}

}  // namespace penstock
