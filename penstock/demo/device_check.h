#pragma once

#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// Five tests of a device: `basics` (bytes go there and come back), `memory`
/// (a share of the free memory holds what is written to it), `network` (a small
/// network learns), `mixed_precision` (the same in bfloat16), `libraries` (what
/// torch is set to).
///
/// A list of {"test", "state": "ok" | "failed" | "n/a", "says", "next"}: `next`
/// is what repairs it, null where nothing is to be repaired. `device`: "cpu",
/// "cuda", "cuda:1". Never throws for what the device does.
Json device_tests(const std::string& device);

/// Six checkpoints of a training of ten steps, each after the one before:
/// `device`, `settings`, `model`, `forward` (with mixed precision), `backward`,
/// `ten_steps` (whose losses are finite). Entries as above, with "seconds",
/// "resident_bytes" and "device_bytes" (null on the host) after each. The first
/// that fails is the last.
Json quick_train(const std::string& device);

}  // namespace penstock
