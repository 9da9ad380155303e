#pragma once

#include <vector>

#include "penstock/advisor/pipeline.h"
#include "penstock/advisor/tuner.h"

namespace penstock {

/// What the tuner made of a described pipeline.
struct TunedPipeline {
  Pipeline pipeline;  ///< as it was set in the end
  std::vector<Decision> decisions;
  std::int64_t windows = 0;  ///< up to the last change that was kept
  std::string rests;         ///< why it went no further

  Json json() const;
};

/// Lets the tuner set the workers of a pipeline's stages within its `cpus`, and
/// all its queues by one knob, how many times as long they are, over windows of
/// `batches` that are simulated one after the other, each with draws of its
/// own. A pure function.
TunedPipeline tune(const Pipeline& pipeline, std::int64_t windows);

}  // namespace penstock
