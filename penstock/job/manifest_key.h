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
  std::string why = {};  ///< why it has no meaning here, or what is different
  bool understood = true;

  /// "manifest: bf16 = true -> train.precision = \"bfloat16\"".
  std::string text() const;
};

}  // namespace penstock
