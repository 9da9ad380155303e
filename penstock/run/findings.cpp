#include "penstock/run/findings.h"

#include <algorithm>
#include <system_error>

#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kFull = 0.97;     // of the memory
constexpr double kJump = 2;        // times the step before
constexpr std::size_t kLeast = 3;  // points on each side of it
constexpr double kShort = 0.005;   // seconds of a step
constexpr double kWaits = 0.2;     // of the time

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

std::optional<Finding> memory_spilled(
    const std::optional<SpilledMemory>& spilled, bool driver_moves) {
  if (!spilled) return std::nullopt;
  return Finding{
      .what = std::string("the device's memory is full, and its steps have "
                          "become slower: ") +
              (driver_moves ? "the driver moves memory to the host"
                            : "samples may be longer, or the driver may move "
                              "memory to the host"),
      .because =
          formatted("%.1f of %.1f GiB in use; a step takes %.1f ms, and "
                    "took %.1f ms before",
                    spilled->bytes / (1 << 30), spilled->total / (1 << 30),
                    1e3 * spilled->step_s, 1e3 * spilled->step_before_s),
      .next =
          "give it less: a smaller batch, train.precision \"bfloat16\", "
          "or loader.cache \"ram\""};
}

std::optional<Finding> bound_by_launches(const StepParts& parts) {
  if (!parts.steps_take_time() || parts.wall.count() <= 0) return std::nullopt;
  const double host = seconds(parts.host) / seconds(parts.wall);
  const double step = seconds(parts.compute) / static_cast<double>(parts.steps);
  const double others = seconds(parts.wait_data) + seconds(parts.wait_copy);
  if (host < kWaits || step > kShort || seconds(parts.host) < others)
    return std::nullopt;
  const double wall = seconds(parts.wall) / static_cast<double>(parts.steps);
  // Twice the batch: at best the same time on the host for twice the rows.
  const double larger = wall + step;
  return Finding{
      .what = "steps are short, and the host queues them late: launches limit",
      .because =
          formatted("a step computes for %.2f ms and the device then waits "
                    "%.2f ms for the host, %.0f %% of the time",
                    1e3 * step, 1e3 * (wall * host), 100 * host),
      .next =
          formatted("a batch twice as large would give up to %.0f %% more for "
                    "twice the memory of its activations; it changes the "
                    "mathematics, so that it is never set by itself",
                    100 * (2 * wall / larger - 1))};
}

std::vector<Finding> findings_of(const std::optional<SpilledMemory>& spilled,
                                 const StepParts& parts) {
  std::vector<Finding> all;
  auto add = [&](std::optional<Finding> found) {
    if (found) all.push_back(std::move(*found));
  };
  add(memory_spilled(spilled, driver_moves_memory()));
  add(bound_by_launches(parts));
  return all;
}

}  // namespace penstock
