#pragma once

#include <string>

#include "penstock/base/error.h"

namespace penstock::cuda {

/// What the CUDA runtime said when it was asked for devices.
struct Answer {
  int driver = 0;           ///< its version as 1000 major + 10 minor; 0: none
  int runtime = 0;          ///< the same of the runtime that this build carries
  bool old_driver = false;  ///< it refused because the driver is too old
  int devices = 0;
  std::string problem;  ///< its reason for finding none; empty: none
  std::string visible;  ///< CUDA_VISIBLE_DEVICES; empty: not set
};

/// True when there is a device to open.
bool has_device(const Answer& answer);

/// Why there is no GPU, for people: device.no_driver, device.old_driver,
/// device.no_gpu or device.cuda.
Error absence(const Answer& answer);

/// There is no GPU of this number among so many.
Error no_such(int number, int devices);

/// The device is older than the oldest that there is code for.
Error too_old(const std::string& device, int major, int minor);

}  // namespace penstock::cuda
