#include "penstock/report/findings.h"

#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kShort = 0.005;  // seconds of a step
constexpr double kWaits = 0.2;    // of the time

}  // namespace

std::optional<Finding> memory_spilled(
    const std::optional<SpilledMemory>& spilled, bool driver_moves) {
  if (!spilled) return std::nullopt;
  return Finding{
      .what =
          std::string("device memory is full and steps have become slower: ") +
          (driver_moves ? "the driver is moving memory to the host"
                        : "samples may be longer, or the driver may be moving "
                          "memory to the host"),
      .because =
          formatted("%.1f of %.1f GiB are in use; a step takes %.1f ms, after "
                    "%.1f ms before",
                    spilled->bytes / (1 << 30), spilled->total / (1 << 30),
                    1e3 * spilled->step_s, 1e3 * spilled->step_before_s),
      .next =
          "use less device memory: a smaller batch, train.precision "
          "\"bfloat16\", or loader.cache \"ram\""};
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
      .what =
          "steps are short and the host queues them late: the run is bound by "
          "kernel launches",
      .because =
          formatted("a step computes for %.2f ms and the device then waits "
                    "%.2f ms for the host, %.0f %% of the time",
                    1e3 * step, 1e3 * (wall * host), 100 * host),
      .next = formatted("a batch twice as large would be up to %.0f %% faster "
                        "and need twice the memory for activations. It changes "
                        "the training, so it is never set automatically",
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
