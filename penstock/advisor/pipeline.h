#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// One stage of a described pipeline. A worker takes one batch at a time.
struct PipelineStage {
  std::string name;
  double service_ms = 0;  ///< of one batch on one worker, on average
  double cv = 0;          ///< standard deviation of that / its mean
  int workers = 1;
  int queue = 1;  ///< places behind the stage, in batches
  /// n workers do the work of n^scaling: below 1 they hinder each other.
  double scaling = 1;
};

/// In which order batches leave a stage.
enum class Delivery {
  completion,  ///< as they are ready
  step,        ///< as they came in: behind every stage the order is restored
};

/// An input pipeline and the steps that it feeds. Each stage is fed by the one
/// before it, the first by a source that always has a batch. Times are drawn
/// from a gamma distribution of the given mean and variation.
struct Pipeline {
  std::vector<PipelineStage> stages;
  double step_ms = 0;
  double step_cv = 0;
  double copy_ms = 0;  ///< to the device, beside the step before; 0: none
  Delivery delivery = Delivery::completion;
  std::int64_t batches = 2000;
  std::int64_t seed = 1;
  int cpus = 1024;  ///< that more workers may use
};

/// Reads a description. Throws Error(request) with the path in the document,
/// which is named `origin`: "pipeline.json: stages[1].workers: ...".
Pipeline parse_pipeline(const Json& document, const std::string& origin);

/// Runs a pipeline in virtual time: what its meters and its step clock would
/// have read. A pure function; thread-safe.
///
/// A worker whose queue is full keeps its batch. With `copy_ms` the device has
/// room for two batches, so that one is copied while the other is used. One
/// sample is one batch.
Snapshot simulate(const Pipeline& pipeline);

/// The pipeline that a window of meters describes, to be simulated with other
/// numbers; none where a stage has no queue of its own, as in a loader.
std::optional<Pipeline> pipeline_of(const Snapshot& window);

/// Batches per second of a simulated window.
double rate_of(const Snapshot& window);

}  // namespace penstock
