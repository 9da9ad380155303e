#pragma once

#include "penstock/base/json.h"

namespace penstock {

/// What a run leaves behind.
struct TrainResult {
  Json report;               ///< also written to report.json
  bool interrupted = false;  ///< stopped by `stop`; state saved
  int rank = 0;              ///< of this process, where there are several
};

}  // namespace penstock
