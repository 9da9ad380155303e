// How close does the tuner come to the best numbers of threads?
//
// Tunes random pipelines in virtual time, 2 to 5 stages on 2 to 16 processors,
// and compares each with the best of all divisions of its processors. Prints a
// JSON document; says on the error stream which pipeline it is at.
//
//     bench_tuner_campaign [PIPELINES [SEED]]    300 of them; a fresh seed
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "penstock/advisor/fake/tuner_cases.h"
#include "penstock/base/base.h"

namespace penstock {
namespace {

constexpr std::int64_t kWindows = 60;

struct Outcome {
  double of_best = 0;  // rate / the best one
  double windows = 0;  // up to the last change that stayed
  bool budget_broken = false;
  bool back_and_forth = false;  // one knob undone twice within 20 windows
};

Outcome outcome_of(const Pipeline& pipeline) {
  const TunedPipeline tuned = tune(pipeline, kWindows);
  Outcome outcome{
      .of_best = rate_of(simulate(tuned.pipeline)) / best_rate(pipeline),
      .windows = static_cast<double>(tuned.windows)};
  int workers = static_cast<int>(pipeline.stages.size());
  std::map<std::string, std::int64_t> undone;
  for (const Decision& change : tuned.decisions) {
    for (const KnobChange& each : change.changes())
      if (each.knob.ends_with(".workers")) workers += each.to - each.from;
    outcome.budget_broken |= workers > pipeline.cpus;
    if (!change.undone) continue;
    for (const KnobChange& each : change.changes()) {
      auto [last, first] = undone.try_emplace(each.knob, change.window);
      outcome.back_and_forth |=
          !first && change.window - last->second < Tuner::kFrozen;
      last->second = change.window;
    }
  }
  return outcome;
}

double quantile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(
      at * static_cast<double>(values.size() - 1))];
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  const std::uint64_t count =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300;
  const std::uint64_t seed =
      argc > 2 ? std::strtoull(argv[2], nullptr, 10)
               : static_cast<std::uint64_t>(
                     std::chrono::system_clock::now().time_since_epoch() /
                     std::chrono::seconds(1));
  std::vector<double> of_best, windows;
  int broken = 0, back_and_forth = 0, below = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::fprintf(stderr, "\r%lu of %lu", i + 1, count);
    const Outcome outcome = outcome_of(pipeline_to_tune(seed + i));
    of_best.push_back(outcome.of_best);
    windows.push_back(outcome.windows);
    broken += outcome.budget_broken;
    back_and_forth += outcome.back_and_forth;
    below += outcome.of_best < 0.97;
    if (outcome.of_best < 0.97)
      std::fprintf(stderr, "\rseed %lu: %.3f of the best\n", seed + i,
                   outcome.of_best);
  }
  std::fprintf(stderr, "\n");
  Json json;
  json["pipelines"] = static_cast<std::int64_t>(count);
  json["seed"] = static_cast<std::int64_t>(seed);
  Json& rate = json["rate_of_best"];
  rate["least"] = quantile(of_best, 0);
  rate["p5"] = quantile(of_best, 0.05);
  rate["median"] = quantile(of_best, 0.5);
  json["below_97_percent"] = below;
  json["windows"]["median"] = quantile(windows, 0.5);
  json["windows"]["p95"] = quantile(windows, 0.95);
  json["budget_broken"] = broken;
  json["undone_twice_within_20_windows"] = back_and_forth;
  std::printf("%s\n", json.dump().c_str());
}
