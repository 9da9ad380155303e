#pragma once

#include "penstock/device/operation.h"

/// What run_on_host() does, by kind.
namespace penstock::on_host {

void run(const Gather& gather);
void run(const CastNormalize& cast);
void run(const CropFlip& crop);
void run(const Resize& resize);
void run(const Mask& mask);
void run(const Move& move);
inline void run(const HostKernel& kernel) { kernel.run(); }

}  // namespace penstock::on_host
