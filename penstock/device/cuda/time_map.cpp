#include "penstock/device/cuda/time_map.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/error.h"

namespace penstock::cuda {
namespace {

// Events are asked for their time soon; older pieces are of no use.
constexpr std::size_t kMostPieces = 64;
constexpr double kMostOff = 1e-3;

}  // namespace

// host + passed + (rate - 1) * min(passed, kInterval). The rate is within a
// thousandth of 1, so a piece is strictly increasing, and the next one begins
// where this one is at that moment: the whole map is continuous and increasing,
// other than at a jump.
Nanoseconds TimeMap::Piece::at(Nanoseconds time) const {
  // What is made up for is made up for once, however late the next reading.
  Nanoseconds passed = time - device;
  double changed = static_cast<double>(
      std::clamp(passed, Nanoseconds(0), kInterval).count());
  return host + passed + Nanoseconds(std::llround((rate - 1) * changed));
}

void TimeMap::read(Nanoseconds device, Nanoseconds host) {
  if (pieces_.empty()) {
    pieces_.push_back({device, host, 1});
    return;
  }
  Nanoseconds told = pieces_.back().at(device);
  Nanoseconds off = host - told;
  if (std::chrono::abs(off) > kMostMadeUp) {
    pieces_.push_back({device, host, 1});
  } else {
    double wanted = static_cast<double>(off.count()) /
                    static_cast<double>(kInterval.count());
    double rate = 1 + std::clamp(wanted, -kMostOff, kMostOff);
    pieces_.push_back({device, told, rate});
  }
  if (pieces_.size() > kMostPieces) pieces_.pop_front();
}

Nanoseconds TimeMap::host_time(Nanoseconds device) const {
  PENSTOCK_ASSERT(!pieces_.empty(), "both clocks were read");
  auto piece = std::find_if(
      pieces_.rbegin(), pieces_.rend(),
      [&](const Piece& candidate) { return candidate.device <= device; });
  return (piece == pieces_.rend() ? pieces_.front() : *piece).at(device);
}

}  // namespace penstock::cuda
