#pragma once

#include <string>

#include "penstock/dataset/dataset.h"

namespace penstock {

/// "1.2 GiB of 2.9 GiB read, 41 % [00:12<00:17]", after so many seconds: as
/// bytes of text, which cost time where rows do not. What an interrupted call
/// had left says nothing of the time.
std::string scan_line(const ScanProgress& progress, double taken);

}  // namespace penstock
