#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/device/device.h"
#include "penstock/session/step_memory.h"

namespace penstock {

/// Bytes of the device that rows and batches take, of all loaders.
struct DataMemory {
  std::int64_t cache = 0;       ///< prepared rows
  std::int64_t look_ahead = 0;  ///< batches
};
/// What they take now, and took at most at any time. The rows of the host are
/// on no device.
struct DataMemoryNow {
  DataMemory bytes, peak;
};
DataMemoryNow data_memory(const Device& device);

/// The memory of the device over a run, by owner. Each sample is the highest of
/// some steps; where there would be more than kMost samples, neighbors are
/// merged, so that each covers twice as many steps. One thread.
class MemoryAccount {
 public:
  /// A step has ended, `seconds` after the run began.
  void add(double seconds, const MemoryByOwner& model, const DataMemory& data);

  /// Columns of one length: "seconds" (the end of each sample), "parameters",
  /// "gradients", "optimizer", "activations", "cache", "look_ahead". Null
  /// without a sample.
  Json json() const;

  static constexpr std::size_t kMost = 256;

 private:
  struct Sample {
    double seconds = 0;
    std::int64_t steps = 0;
    MemoryByOwner model;
    DataMemory data;
    void add(const Sample& later);
  };
  void merge();

  std::vector<Sample> samples_;
  std::int64_t each_ = 1;  ///< steps of a sample
};

}  // namespace penstock
