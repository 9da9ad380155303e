#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/run/trained_run.h"

namespace penstock {

// Folders of models in the layout of Hugging Face: config.json, and weights in
// `model.safetensors` or in the shards that an index names.

/// What was written.
struct WrittenModel {
  std::int64_t layers = 0;  ///< that were quantised, or merged
  std::int64_t bytes_before = 0, bytes_after = 0;  ///< of those layers
};

/// Writes the model of the folder `model` into `out`, a new or empty folder,
/// with the weights of its linear layers as nf4 and all else unchanged: shard
/// by shard, one of which is held in memory. bitsandbytes, transformers and
/// `model.path` read it. `nested`: scales have eight bits.
///
/// Throws Error(request): model.config and model.weights for what is not such a
/// model, or is quantised already; model.out_exists; and what OutputFolder
/// throws.
WrittenModel quantize_model(const std::string& model, const std::string& out,
                            bool nested);

/// Writes the model of a run that trained adapters into `out`: their products
/// are added to the weights beside them, which are dequantised where they have
/// four bits, and every floating weight is rounded once, to `dtype` (float16 or
/// bfloat16).
///
/// Throws as quantize_model() does; model.no_adapters for another run.
WrittenModel merge_adapters(const TrainedRun& run, const std::string& out,
                            Dtype dtype);

}  // namespace penstock
