#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/monitor/snapshot.h"

namespace penstock {

/// What the progress line shows.
struct Progress {
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  std::int64_t step = 0;
  std::int64_t steps = 0;  ///< of the epoch
  double elapsed_s = 0;
  double left_s = 0;  ///< of the whole run, from the pace so far
  std::optional<double> loss;
  StepParts parts;  ///< of the last window
  HostUse use;
  std::optional<std::size_t> vram_used, vram_total;
};

/// One line: `ep 2/10 412/980 [03:10<04:22] 2.16 it/s loss 2.31 | AU 71 % <-
/// data 22 % copy 5 % host 2 % | VRAM 17.9/24.0 GiB RAM 1.2 GiB`. The shares
/// sum to 100; what is not known is `n/a`.
std::string progress_line(const Progress& progress);

/// "03:10", "1:02:03"; "--:--" when unknown.
std::string shown_time(double seconds);

}  // namespace penstock
