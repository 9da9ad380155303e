#include "penstock/monitor/snapshot.h"

#include <cmath>

namespace penstock {

double rows_per_sample(const Snapshot& window) {
  if (window.samples == 0 || window.stages.empty()) return 1;
  const double rows = static_cast<double>(window.stages.back().items) /
                      static_cast<double>(window.samples);
  // A batch more was delivered than the loop has taken.
  return rows < 1.05 ? 1 : rows;
}

Snapshot in_samples(Snapshot window) {
  const double rows = rows_per_sample(window);
  if (rows > 1)
    for (StageNumbers& stage : window.stages)
      stage.items = std::llround(static_cast<double>(stage.items) / rows);
  return window;
}

}  // namespace penstock
