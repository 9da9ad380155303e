#include "penstock/session/scan_line.h"

#include <algorithm>

#include "penstock/monitor/monitor.h"

namespace penstock {

std::string scan_line(const ScanProgress& progress, double taken) {
  const auto bytes = static_cast<double>(progress.bytes);
  std::string text = shown_bytes(static_cast<std::size_t>(progress.bytes));
  const double share = progress.share - progress.found_share;
  if (share <= 0)
    return text + " read, " + std::to_string(progress.rows) + " rows [" +
           shown_time(taken) + "]";
  const double all = bytes * (1 - progress.found_share) / share;
  const double left = taken * std::max(0.0, 1 - progress.share) / share;
  text += " of " + shown_bytes(static_cast<std::size_t>(all)) + " read, " +
          std::to_string(static_cast<int>(100 * progress.share)) + " % [" +
          shown_time(taken) + "<" + shown_time(left) + "]";
  if (progress.found_rows > 0)
    text += ", " + std::to_string(progress.found_rows) +
            " rows were already prepared";
  return text;
}

}  // namespace penstock
