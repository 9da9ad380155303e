#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/job/job.h"

namespace penstock {

/// Which steps to look at, and whether to keep their tensors.
struct BatchQuery {
  Side side = Side::train;
  std::int64_t epoch = 0;
  std::int64_t first_step = 0;
  std::int64_t end_step = 1;  ///< half-open; beyond the epoch it stops
  Rank rank;
  std::string out;  ///< a folder for one .safetensors per step; may be empty
  const std::atomic<bool>* stop = nullptr;  ///< ends after the step at hand
};

/// Makes these batches as training would, without walking through the steps
/// before them, and hands each as {epoch, step, keys, order_digest,
/// bytes_digest}. Digests are SHA-256: of the ids as little-endian int64; of
/// all tensors in order, little-endian, C order. False when it was stopped.
bool look_at_batches(const Job& job, const BatchQuery& query,
                     const std::function<void(const Json&)>& each);

}  // namespace penstock
