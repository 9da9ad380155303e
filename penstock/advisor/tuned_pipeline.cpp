#include "penstock/advisor/tuned_pipeline.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr int kMostWorkers = 256;

std::vector<Knob> knobs_of(const Pipeline& pipeline) {
  std::vector<Knob> knobs;
  for (const PipelineStage& stage : pipeline.stages) {
    knobs.push_back({.name = stage.name + ".workers",
                     .pool = stage.name,
                     .value = stage.workers,
                     .most = std::max(stage.workers, kMostWorkers)});
    knobs.push_back({.name = stage.name + ".queue",
                     .value = stage.queue,
                     .most = std::max(stage.queue, Tuner::kDeepest)});
  }
  return knobs;
}

/// As the knobs of knobs_of() are.
void set(Pipeline& pipeline, const std::vector<Knob>& knobs) {
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    pipeline.stages[i].workers = knobs[2 * i].value;
    pipeline.stages[i].queue = knobs[2 * i + 1].value;
  }
}

}  // namespace

TunedPipeline tune(Pipeline pipeline, std::int64_t windows) {
  const std::int64_t seed = pipeline.seed;
  Tuner tuner({.cpus = static_cast<double>(pipeline.cpus),
               .threads = 2 * pipeline.cpus},
              knobs_of(pipeline));
  for (std::int64_t i = 0; i < windows; ++i) {
    // Draws are keyed by seed and batch: other ones for the next window.
    pipeline.seed = seed + i * 1'000'003 % INT32_MAX;
    tuner.next(simulate(pipeline));
    set(pipeline, tuner.knobs());
  }
  pipeline.seed = seed;
  TunedPipeline tuned{.pipeline = std::move(pipeline),
                      .decisions = tuner.decisions(),
                      .rests = tuner.rests()};
  for (const Decision& decision : tuned.decisions)
    if (!decision.undone && decision.predicted_gain > 0)
      tuned.windows = decision.window + 1;
  return tuned;
}

Json TunedPipeline::json() const {
  Json json;
  json["stages"] = Json::Array{};
  for (const PipelineStage& stage : pipeline.stages) {
    Json entry;
    entry["name"] = stage.name;
    entry["workers"] = stage.workers;
    entry["queue"] = stage.queue;
    json["stages"].push_back(std::move(entry));
  }
  json["decisions"] = Json::Array{};
  for (const Decision& decision : decisions)
    json["decisions"].push_back(decision.json());
  json["windows"] = windows;
  json["rests"] = rests;
  return json;
}

}  // namespace penstock
