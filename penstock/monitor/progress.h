#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/monitor/host.h"
#include "penstock/monitor/nvml.h"
#include "penstock/monitor/step_clock.h"

namespace penstock {

/// What a model does with each row, learning from it; 0: not known.
struct RowWork {
  double tokens = 0;
  double flops = 0;       ///< forward and backward
  double peak_flops = 0;  ///< of the device, in a second

  double tokens_per_s(double rows_per_s) const { return rows_per_s * tokens; }
  /// The share of the peak that is used at this rate (MFU); 0: not known.
  double utilisation(double rows_per_s) const {
    return peak_flops > 0 ? rows_per_s * flops / peak_flops : 0;
  }
};

/// What the progress line shows.
struct Progress {
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;  ///< 0: there is no last one
  std::int64_t step = 0;
  std::int64_t steps = 0;  ///< of the epoch; 0: not known
  double elapsed_s = 0;    ///< since this run began to take steps
  /// By this run alone: a run that it resumes had a pace of its own.
  std::int64_t steps_taken = 0;
  std::int64_t steps_left = 0;  ///< of the whole job; -1: no end
  std::optional<double> loss;
  StepParts parts;  ///< of the last window
  RowWork row;
  HostLimits limits;
  HostUse use;
  std::optional<double> cpus_used;  ///< of the last window
  DeviceUse device;
  std::optional<GpuUse> gpu;  ///< of the last window; none: no GPU
  /// Of several ranks: what they wait for, "rank 2 on gpu03 (input)".
  std::string waits_for = {};
};

/// One line: `ep 2/10 412/980 [03:10<04:22] 2.16 it/s loss 2.31 | AU 71 % <-
/// data 22 % copy 5 % host 2 % | GPU 97 % 64 C 512 W VRAM 17.9/24.0 GiB RAM
/// 1.2/64.0 GiB CPU 7.4/8`, with tokens per second and the share of the peak
/// (`tok/s 51200 MFU 38 %`) before the loss where they are known. The time left
/// is from this run's own pace. The shares sum to 100 and the arrow names where
/// missing time goes. What is not known is `n/a`: AU too, where the steps take
/// no time. `GPU` is left out where the device is not a GPU. Of several ranks,
/// `waits for rank 2 on gpu03 (input)` stands before the shares.
///
/// `columns`: the width of a terminal, 0: no limit. It then has a bar of the
/// epoch after the step, and its last parts are left out where there is no room
/// for them.
std::string progress_line(const Progress& progress, int columns = 0);

/// "AU 71 % <- data 22 % copy 5 % host 2 %"; "AU n/a <- ..." where the steps
/// take no time: what they computed is then the host's time.
std::string shown_shares(const StepParts& parts);

/// The results of one epoch.
struct EpochNumbers {
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  StepParts parts;
  std::optional<double> train_loss, val_loss;
};

/// One line at the end of an epoch: `epoch 2/10: 12.3 s, 3276 samples/s, AU
/// 71 % <- data 22 % copy 5 % host 2 %, loss 2.31, val loss 2.4`. Losses only
/// where there are any.
std::string epoch_summary(const EpochNumbers& epoch);

/// "03:10", "1:02:03"; "--:--" when unknown.
std::string shown_time(double seconds);

}  // namespace penstock
