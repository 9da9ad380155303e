#include "penstock/advisor/little_memory.h"

#include <algorithm>

#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kLimits = 2. / 3;  // of the time, in steps: these limit

bool keeps_rows_on_device(const Snapshot& window) {
  return std::ranges::any_of(window.tiers, [](const TierCapacity& tier) {
    return tier.in_use && tier.name == "device";
  });
}

double times_slower(const SpilledMemory& spilled) {
  return spilled.step_s / spilled.step_before_s;
}

std::string numbers_of(const SpilledMemory& spilled) {
  return formatted(
      "; %.1f of %.1f GiB of device memory were in use, and a step takes %.1f "
      "ms, after %.1f ms before",
      spilled.bytes / (1 << 30), spilled.total / (1 << 30),
      1e3 * spilled.step_s, 1e3 * spilled.step_before_s);
}

}  // namespace

std::optional<Action> rows_off_device(const Snapshot& window) {
  if (!keeps_rows_on_device(window)) return std::nullopt;
  const auto to =
      std::ranges::find_if(window.tiers, [](const TierCapacity& tier) {
        return tier.fits && tier.name != "device" && tier.name != "none";
      });
  if (to == window.tiers.end()) return std::nullopt;
  return Action{.knob = "loader.cache",
                .from = "device",
                .to = to->name,
                .cost = std::string(to->name == "disk" ? "a file for"
                                                       : "host memory for") +
                        " the rows, and a copy to the device for each batch; "
                        "the gain may be less"};
}

double compute_before(const Snapshot& window) {
  const double compute = seconds(window.parts.compute);
  return window.spilled ? compute / times_slower(*window.spilled) : compute;
}

std::string memory_is_full_too(const Snapshot& window) {
  if (!window.spilled) return {};
  return "; device memory is full too, and the driver moves what does not fit "
         "to the host" +
         numbers_of(*window.spilled);
}

std::optional<Verdict> memory_is_full(const Snapshot& window,
                                      const std::string& measured) {
  const double wall = seconds(window.parts.wall);
  const double compute = seconds(window.parts.compute);
  if (!window.spilled || compute < kLimits * wall) return std::nullopt;
  Verdict verdict{
      .limit = Limit::compute,
      .cause =
          formatted("device memory is full, and the driver moves what does not "
                    "fit to the host: steps take %.1f times as long as before",
                    times_slower(*window.spilled)),
      .because = measured + numbers_of(*window.spilled),
      .no_action =
          (keeps_rows_on_device(window)
               ? std::string(
                     "the host has no room for the rows that the device keeps")
               : std::string("the rows are not in device memory")) +
          ": use less device memory with a smaller batch or "
          "\"train.precision\": \"bfloat16\", which change the training"};
  std::optional<Action> leave = rows_off_device(window);
  if (!leave) return verdict;
  leave->predicted_gain = wall / (wall - compute + compute_before(window)) - 1;
  verdict.no_action.clear();
  verdict.actions.push_back(std::move(*leave));
  return verdict;
}

std::string rows_read_again(const Snapshot& window) {
  double read = 0;
  std::string why, budget;
  bool fits = false;
  for (const TierCapacity& tier : window.tiers) {
    if (tier.name == "none") {
      read = tier.holds;
      continue;
    }
    fits = fits || (tier.fits && !tier.in_use);
    if (!tier.lacks_budget.empty()) budget = tier.lacks_budget;
    if (tier.in_use && tier.holds < 1)
      why += formatted(
          why.empty() ? "'%s' holds %.0f %% of them" : ", '%s' %.0f %%",
          tier.name.c_str(), 100 * tier.holds);
  }
  if (read <= 0 || (why.empty() && fits)) return {};
  if (!budget.empty())
    why = why.empty() ? "'" + budget + "' leaves no room for them"
                      : why + ", and '" + budget + "' allows no more";
  if (why.empty()) why = "no memory has room for them";
  return formatted("%.0f %% of the rows are read again in each epoch, ",
                   100 * read) +
         why + ": ";
}

}  // namespace penstock
