#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "penstock/advisor/advisor.h"

namespace penstock {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kSmallestGain = 0.02;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[240];
  std::snprintf(text, sizeof(text), pattern, values...);
  return text;
}

/// Samples per second that a stage could do if it were never made to wait.
double rate_of(const StageNumbers& stage) {
  double busy = seconds(stage.busy_wall);
  if (busy <= 0 || stage.items == 0) return kEndless;
  return stage.workers * static_cast<double>(stage.items) / busy;
}

/// Share of its busy time in which a stage used a processor.
double cpu_share(const StageNumbers& stage) {
  double busy = seconds(stage.busy_wall);
  return busy <= 0 ? 0 : seconds(stage.busy_cpu) / busy;
}

bool reads_source(const StageNumbers& stage) {
  return stage.name.starts_with("read") || stage.name == "prepare";
}

/// The window seen as rates, in samples per second.
struct Rates {
  double now;      ///< what the run did
  double compute;  ///< what the accelerator could do
  double slowest_but(const Snapshot& window, const StageNumbers* left_out,
                     bool without_source) const {
    double rate = compute;
    for (const StageNumbers& stage : window.stages)
      if (&stage != left_out && !(without_source && reads_source(stage)))
        rate = std::min(rate, rate_of(stage));
    return rate;
  }
  double gain(double rate) const { return rate / now - 1; }
};

void offer(std::vector<Action>& actions, Action action) {
  if (action.predicted_gain >= kSmallestGain &&
      std::isfinite(action.predicted_gain))
    actions.push_back(std::move(action));
}

void explain_stage(const Snapshot& window, const StageNumbers& stage,
                   const Rates& rates, Verdict& verdict) {
  verdict.stage = stage.name;
  double per_call = stage.calls == 0 ? 0
                                     : static_cast<double>(stage.items) /
                                           static_cast<double>(stage.calls);
  bool row_by_row = stage.calls > 0 && per_call < 1.5;
  double u = cpu_share(stage);
  if (row_by_row)
    verdict.cause = format(
        "the database is asked once per sample, %.2f ms each time",
        1e3 * seconds(stage.busy_wall) / static_cast<double>(stage.calls));
  else if (u > 0.8)
    verdict.cause = "'" + stage.name + "' needs more processor time";
  else if (stage.calls > 0 && u < 0.3)
    verdict.cause = format(
        "'%s' waits for answers: %.0f rows per statement, %.2f ms each",
        stage.name.c_str(), per_call,
        1e3 * seconds(stage.busy_wall) / static_cast<double>(stage.calls));
  else
    verdict.cause = "'" + stage.name + "' is the slowest stage";
  verdict.because += format(
      "; '%s' gives %.0f samples/s with %d worker%s, its processor share is "
      "%.0f %%",
      stage.name.c_str(), rate_of(stage), stage.workers,
      stage.workers == 1 ? "" : "s", 100 * u);

  if (reads_source(stage)) {
    double rate = rates.slowest_but(window, &stage, true);
    Action keep{
        .knob = "loader.cache",
        .from = "none",
        .to = "auto",
        .predicted_gain = rates.gain(rate),
        .cost = "memory for the prepared rows, and one pass to fill it"};
    if (row_by_row && stage.name == "read per sample") {
      keep.knob = "loader.read";
      keep.from = "per_sample";
      keep.to = "batch";
    }
    offer(verdict.actions, std::move(keep));
  }
  if (!row_by_row && stage.workers + 1 <= window.limits.cpus) {
    double more = rate_of(stage) * (stage.workers + 1) / stage.workers;
    double rate = std::min(more, rates.slowest_but(window, &stage, false));
    offer(verdict.actions, {.knob = "loader.workers",
                            .from = stage.workers,
                            .to = stage.workers + 1,
                            .predicted_gain = rates.gain(rate),
                            .cost = "one more processor"});
  }
  std::ranges::stable_sort(verdict.actions,
                           [](const Action& a, const Action& b) {
                             return a.predicted_gain > b.predicted_gain;
                           });
}

}  // namespace

std::string_view name_of(Limit limit) {
  static constexpr std::string_view kNames[] = {"compute", "data", "copy",
                                                "order",   "host", "unknown"};
  return kNames[static_cast<std::size_t>(limit)];
}

Json Verdict::json() const {
  Json json;
  json["limit"] = name_of(limit);
  json["stage"] = stage.empty() ? Json() : Json(stage);
  json["cause"] = cause;
  json["because"] = because;
  json["actions"] = Json::Array{};
  for (const Action& action : actions) {
    Json entry;
    entry["knob"] = action.knob;
    entry["from"] = action.from;
    entry["to"] = action.to;
    entry["predicted_gain"] = action.predicted_gain;
    entry["cost"] = action.cost;
    json["actions"].push_back(std::move(entry));
  }
  return json;
}

Verdict diagnose(const Snapshot& window) {
  Verdict verdict;
  const StepParts& parts = window.parts;
  double wall = seconds(parts.wall);
  double compute = seconds(parts.compute);
  if (parts.steps < 1 || wall <= 0) {
    verdict.cause = "too few steps to say";
    verdict.because = format("%ld steps were timed", long(parts.steps));
    return verdict;
  }
  if (compute <= 0) {
    verdict.cause = "the steps take no time, so nothing can wait for them";
    verdict.because = "no time was spent computing";
    return verdict;
  }
  double data = seconds(parts.wait_data) / wall;
  double copy = seconds(parts.wait_copy) / wall;
  double host = seconds(parts.host) / wall;
  double order = std::min(seconds(window.wait_order) / wall, data);
  verdict.because = format(
      "of the wall time %.1f %% computes, %.1f %% waits for data, %.1f %% for "
      "the copy, %.1f %% for the host",
      100 * compute / wall, 100 * data, 100 * copy, 100 * host);
  Rates rates{.now = static_cast<double>(window.samples) / wall,
              .compute = static_cast<double>(window.samples) / compute};

  if (data + copy + host < 0.03) {
    verdict.limit = Limit::compute;
    verdict.cause = "the accelerator is busy; the input keeps up";
    return verdict;
  }
  if (copy > data && copy > host) {
    verdict.limit = Limit::copy;
    verdict.cause = "batches wait for their copy to the device";
    offer(verdict.actions, {.knob = "loader.cache",
                            .from = "ram",
                            .to = "device",
                            .predicted_gain = rates.gain(rates.compute),
                            .cost = "device memory for the prepared rows"});
    return verdict;
  }
  if (host > data) {
    verdict.limit = Limit::host;
    verdict.cause = "the training loop itself is late to queue the next step";
    return verdict;
  }
  if (order > data / 2) {
    verdict.limit = Limit::order;
    verdict.cause = "later batches are complete, but an earlier one is missing";
  } else {
    verdict.limit = Limit::data;
  }
  auto slowest = std::ranges::min_element(window.stages, {}, rate_of);
  if (slowest == window.stages.end() || rate_of(*slowest) == kEndless) {
    verdict.cause = "batches come late, and no stage was measured";
    return verdict;
  }
  if (rate_of(*slowest) > 1.05 * rates.compute) {
    verdict.stage = slowest->name;
    verdict.cause = "every stage is fast enough, but batches come in bursts";
    return verdict;
  }
  explain_stage(window, *slowest, rates, verdict);
  return verdict;
}

}  // namespace penstock
