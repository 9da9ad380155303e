#include "penstock/advisor/tuned_pipeline.h"

#include <algorithm>

#include "penstock/advisor/trials.h"

namespace penstock {
namespace {

constexpr int kMostWorkers = 256;

std::vector<Knob> knobs_of(const Pipeline& pipeline) {
  std::vector<Knob> knobs;
  for (const PipelineStage& stage : pipeline.stages)
    knobs.push_back({.name = stage.name + ".workers",
                     .pool = stage.name,
                     .value = stage.workers,
                     .most = std::max(stage.workers, kMostWorkers)});
  knobs.push_back({.name = "queues", .most = Tuner::kDeepest});
  return knobs;
}

/// `from` with the values of the knobs of knobs_of().
Pipeline with(const Pipeline& from, const std::vector<Knob>& knobs) {
  Pipeline pipeline = from;
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i)
    pipeline.stages[i].workers = knobs[i].value;
  deepen_queues(pipeline, knobs.back().value, Tuner::kDeepest);
  return pipeline;
}

}  // namespace

TunedPipeline tune(const Pipeline& from, std::int64_t windows) {
  Tuner tuner(
      {.cpus = static_cast<double>(from.cpus), .threads = 2 * from.cpus},
      knobs_of(from));
  for (std::int64_t i = 0; i < windows; ++i) {
    Pipeline now = with(from, tuner.knobs());
    // Draws are keyed by seed and batch: other ones for the next window.
    now.seed = from.seed + i * 1'000'003 % INT32_MAX;
    tuner.next(simulate(now));
  }
  TunedPipeline tuned{.pipeline = with(from, tuner.knobs()),
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
