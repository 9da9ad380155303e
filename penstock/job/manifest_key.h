#pragma once

#include <string>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What became of a key of a manifest.
struct ManifestKey {
  std::string key;  ///< "training.bf16"
  Json value;
  /// The settings of the job that it became; empty: none.
  std::vector<std::string> settings = {};

}  // namespace penstock
