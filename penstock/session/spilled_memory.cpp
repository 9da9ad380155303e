#include "penstock/session/spilled_memory.h"

#include <algorithm>
#include <system_error>
#include <vector>

namespace penstock {
namespace {

constexpr double kFull = 0.97;     // of the memory
constexpr double kJump = 2;        // times the step before
constexpr std::size_t kLeast = 3;  // points on each side of it

double median(std::vector<double> values) {
  auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Seconds in which the device works on a step, and its memory; of the points
/// that have both.
struct Seen {
  double step_s = 0, bytes = 0;
};

std::vector<Seen> seen_in(const TimelineNumbers& timeline) {
  std::vector<Seen> all;
  for (const TimelineNumbers::Point& point : timeline.points) {
    const Readings& bytes = point.use.device_bytes;
    if (point.parts.steps == 0 || bytes.count == 0) continue;
    all.push_back(
        {seconds(point.parts.compute) / static_cast<double>(point.parts.steps),
         bytes.max});
  }
  return all;
}

double median_step(const std::vector<Seen>& all, std::size_t from,
                   std::size_t to) {
  std::vector<double> times;
  for (std::size_t i = from; i < to; ++i) times.push_back(all[i].step_s);
  return median(std::move(times));
}

}  // namespace

bool driver_moves_memory(const std::filesystem::path& root) {
  std::error_code missing;
  return std::filesystem::exists(root / "dev/dxg", missing);
}

std::optional<SpilledMemory> spilled_memory(const TimelineNumbers& timeline,
                                            std::optional<std::size_t> total) {
  if (!total || *total == 0) return std::nullopt;
  const std::vector<Seen> all = seen_in(timeline);
  const double full = kFull * static_cast<double>(*total);
  const auto found = std::ranges::find_if(
      all, [&](const Seen& seen) { return seen.bytes >= full; });
  const auto at = static_cast<std::size_t>(found - all.begin());
  if (at < kLeast || all.size() < at + kLeast) return std::nullopt;
  const double before = median_step(all, 0, at);
  const double after = median_step(all, at, all.size());
  if (before <= 0 || after < kJump * before) return std::nullopt;
  return SpilledMemory{.bytes = found->bytes,
                       .total = static_cast<double>(*total),
                       .step_before_s = before,
                       .step_s = after};
}

}  // namespace penstock
