#include <algorithm>
#include <cmath>

#include "penstock/advisor/advisor.h"
#include "penstock/advisor/cause_in_stage.h"
#include "penstock/advisor/gain.h"
#include "penstock/advisor/gaps_in_steps.h"
#include "penstock/advisor/little_memory.h"
#include "penstock/advisor/offers.h"
#include "penstock/advisor/pools.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/advisor/trials.h"
#include "penstock/advisor/window_rates.h"
#include "penstock/base/formatted.h"

namespace penstock {
namespace {

constexpr double kNoWaiting = 0.03;  // of the wall time: nothing to gain
constexpr double kCrowded = 0.7;     // of the processors: threads collide

/// What its threads are called: those of I/O stand apart from the workers.
const char* threads_of(const Pool& pool) {
  return pool.name.ends_with("readers") ? "reader" : "worker";
}

/// Makes a verdict on one window, part by part.
class Diagnosis {
 public:
  explicit Diagnosis(const Snapshot& window)
      : window_(window),
        wall_(seconds(window.parts.wall)),
        compute_(seconds(window.parts.compute)),
        tiers_(tiers_in(window)),
        pipeline_(pipeline_of(window)) {}

  Verdict make() {
    if (says_anything()) judge();
    if (verdict_.actions.empty() && verdict_.no_action.empty())
      verdict_.no_action = "no known setting would gain 2 %";
    if (!verdict_.actions.empty()) verdict_.no_action.clear();
    return std::move(verdict_);
  }

 private:
  void judge() {
    double data = seconds(window_.parts.wait_data) / wall_;
    double copy = seconds(window_.parts.wait_copy) / wall_;
    double host = seconds(window_.parts.host) / wall_;
    double order = std::min(seconds(window_.wait_order) / wall_, data);
    verdict_.because = formatted(
        "%.1f %% of the steps' time is computing, %.1f %% waiting for data, "
        "%.1f %% waiting for copies and %.1f %% waiting for the host",
        100 * compute_ / wall_, 100 * data, 100 * copy, 100 * host);
    if (window_.virtual_time)
      verdict_.because +=
          "; these times come from a virtual clock, which stops while "
          "the host works, and cannot be compared with the times of the stages";

    if (data + copy + host >= kNoWaiting) {
      if (copy > data && copy > host) {
        copies();
      } else if (host > data) {
        host_loop();
      } else {
        verdict_.limit = order > data / 2 ? Limit::order : Limit::data;
        late();
      }
    }
    if (data + copy + host < kNoWaiting || compute_ > kBusy * wall_)
      compute();
    else if (auto spilled = memory_is_full(window_, verdict_.because))
      verdict_ = std::move(*spilled);
    else
      add_full_memory();
    std::ranges::stable_sort(verdict_.actions,
                             [](const Action& a, const Action& b) {
                               return a.predicted_gain > b.predicted_gain;
                             });
  }

  /// Steps that are slow, too, beside what limits.
  void add_full_memory() {
    verdict_.because += memory_is_full_too(window_);
    // Batches that wait for their copy would wait for more of it.
    if (verdict_.limit != Limit::copy) offer(keep_off_device(window_));
  }

  bool says_anything() {
    const StepParts& parts = window_.parts;
    if (parts.steps < 1 || wall_ <= 0) {
      verdict_.cause = "too few steps for a verdict";
      verdict_.because = formatted("%ld steps were timed", long(parts.steps));
      verdict_.no_action = "take more steps, then ask again";
      return false;
    }
    if (parts.steps_take_time()) return true;
    verdict_.cause =
        "the steps take practically no time, so only the input was measured";
    verdict_.because =
        formatted("a step computes for %.2f us on average",
                  1e6 * compute_ / static_cast<double>(parts.steps));
    verdict_.no_action =
        "measure steps that take time: train your model, or set device 'sim' "
        "with a 'step_ms'";
    return false;
  }

  void compute() {
    if (auto spilled = memory_is_full(window_, verdict_.because)) {
      verdict_ = std::move(*spilled);
      return;
    }
    if (auto gaps = gaps_in_steps(window_, verdict_.because)) {
      verdict_ = std::move(*gaps);
      return;
    }
    verdict_.limit = Limit::compute;
    verdict_.stage.clear();
    std::erase_if(verdict_.actions, [](const Action& action) {
      return action.predicted_gain < kWorthWhileBusy;
    });
    verdict_.no_action =
        "the accelerator is the bottleneck, and no known setting would gain 5 "
        "%";
    verdict_.cause = window_.virtual_time
                         ? "the accelerator is busy; a virtual clock cannot "
                           "show whether the input keeps up"
                         : "the accelerator is busy; the input keeps up";
  }

  void copies() {
    verdict_.limit = Limit::copy;
    verdict_.cause = "batches wait for their copy to the device";
    if (const double bytes = bytes_of_batches(); bytes > 0)
      verdict_.because +=
          formatted("; %.3g MB/s were copied", 1e-6 * bytes / wall_);
    verdict_.because += tiers_.no_room;
    if (tiers_.faster != nullptr && tiers_.faster->name == "device")
      offer(keep_on_device(window_, tiers_));
    else
      verdict_.no_action =
          "the rows cannot be kept on the device; rows with fewer bytes or a "
          "smaller dtype are copied faster";
  }

  /// What the stage before the copies made, in bytes.
  double bytes_of_batches() const {
    double bytes = 0;
    for (const StageNumbers& stage : window_.stages)
      if (makes_batches(stage.work)) bytes += static_cast<double>(stage.bytes);
    return bytes;
  }

  void host_loop() {
    verdict_.limit = Limit::host;
    verdict_.cause = "the training loop itself queues the next step too late";
    verdict_.no_action =
        "no input setting changes that: look at what the loop does between two "
        "steps (logging, metrics, waiting for the device)";
  }

  void late() {
    if (window_.virtual_time) {
      verdict_.no_action =
          "measure with \"clock\": \"wall\" to find the slow stage";
      verdict_.cause = "batches come late, by the virtual clock";
      return;
    }
    std::vector<Pool> pools = pools_of(window_.stages);
    auto slowest = std::ranges::min_element(pools, {}, &Pool::rate);
    if (slowest == pools.end() || std::isinf(slowest->rate())) {
      verdict_.cause = "batches come late, but no stage was measured";
      verdict_.no_action = "take more steps, then ask again";
      return;
    }
    verdict_.stage = slowest->busiest().name;
    work_ = slowest->busiest().work;
    bool quick = slowest->rate() > 1.05 * step_rate(window_);
    if (quick && slowest->workers > 0 && !pipeline_) {
      if (processors_in_use(window_) > kCrowded * window_.limits.cpus)
        return short_of_processors(*slowest);
      verdict_.cause =
          single_pieces(slowest->busiest())
              .value_or(
                  "every stage is fast enough, but batches come in bursts");
      offer(add_batches_ahead(window_));
      verdict_.no_action =
          "no gain can be predicted: take more steps, then try a larger "
          "'loader.prefetch'";
      return;
    }
    explain(*slowest);
    if (pipeline_)
      return change_pipeline(static_cast<std::size_t>(slowest - pools.begin()),
                             quick);
    if (quick)
      verdict_.cause =
          "batches are made on the training thread, between the steps";
    if (verdict_.limit == Limit::order)
      verdict_.cause =
          "later batches are complete, but an earlier one is missing: " +
          verdict_.cause;
    if (std::ranges::any_of(slowest->stages, reads_source)) {
      verdict_.cause = rows_read_again(window_) + verdict_.cause;
      verdict_.because += tiers_.no_room;
    }
    offer(keep_rows(window_, tiers_, *slowest));
    offer(add_threads(window_, *slowest));
    verdict_.no_action =
        std::string("neither another tier nor more ") + threads_of(*slowest) +
        "s would gain 2 %: " +
        (processors_needed(window_) > window_.limits.cpus ? processors_there()
                                                          : "") +
        what_next(*slowest);
  }

  /// Each stage keeps up by itself, but not all at once on these processors.
  void short_of_processors(const Pool& slowest) {
    explain(slowest);
    verdict_.cause = formatted(
        "all stages together need more processor time: %.3g of %.3g "
        "processors are in use",
        processors_in_use(window_), window_.limits.cpus);
    verdict_.no_action = processors_there() + make_cheaper();
  }

  std::string processors_there() const {
    return formatted(
        "to keep the accelerator busy takes %.3g processors, and there are "
        "%.3g; ",
        processors_needed(window_), window_.limits.cpus);
  }

  std::string what_next(const Pool& slowest) const {
    const StageNumbers& stage = slowest.busiest();
    if (std::string instead = instead_of_reader(window_, slowest);
        !instead.empty())
      return instead;
    if (single_pieces(stage)) return "examine the samples of the longest steps";
    if (shares_lock(window_, stage))
      return "they would wait for the same lock: hold it for a shorter time";
    return make_cheaper();
  }

  std::string make_cheaper() const {
    return "make the stage '" + verdict_.stage + "' cheaper" + how_cheaper();
  }

  std::string how_cheaper() const {
    if (work_ == StageWork::on_device)
      return ", or move it to the host with \"finish\": \"host\" and, if it "
             "decodes files, \"decode\": \"host\"";
    return makes_batches(work_) && !window_.cheaper.empty()
               ? ": " + window_.cheaper
               : "";
  }

  /// Each stage has a queue behind it, so that a change can be simulated.
  void change_pipeline(std::size_t slowest, bool quick) {
    Trials trials = try_changes(*pipeline_, slowest);
    verdict_.actions = std::move(trials.actions);
    const bool order = trials.without_order > trials.faster_stage;
    verdict_.limit = order ? Limit::order : Limit::data;
    if (order)
      verdict_.cause =
          "later batches are complete, but an earlier one is missing: without "
          "a fixed order " +
          formatted("the rate would be %.0f %% higher",
                    100 * trials.without_order);
    else if (quick)
      verdict_.cause =
          "every stage is fast enough on average, but their times vary more "
          "than the queues can absorb";
    verdict_.no_action =
        "neither more workers nor longer queues would gain 2 %: " +
        make_cheaper();
  }

  void explain(const Pool& pool) {
    const StageNumbers& stage = pool.busiest();
    double u = cpu_share(stage);
    verdict_.cause = cause_in_stage(window_, stage);
    double share = pool.share_of(stage);
    verdict_.because += "; '" + stage.name + "'";
    if (share < 0.995)
      verdict_.because +=
          formatted(" is %.0f %% of the work of threads that", 100 * share);
    verdict_.because += formatted(" give%s %.0f samples/s",
                                  share < 0.995 ? "" : "s", pool.rate());
    verdict_.because +=
        pool.workers == 0
            ? std::string(" on the training thread")
            : formatted(" with %d %s%s", pool.workers, threads_of(pool),
                        pool.workers == 1 ? "" : "s");
    verdict_.because +=
        formatted(", and is on a processor for %.0f %% of its time", 100 * u);
    if (const double each = processor_s_per_sample(window_, window_.stages);
        each > 0)
      verdict_.because += formatted(
          "; one processor makes %.0f samples/s, and the accelerator would "
          "take %.0f",
          1 / each, step_rate(window_));
  }

  void offer(std::optional<Action> action) {
    if (action) verdict_.actions.push_back(std::move(*action));
  }

  const Snapshot& window_;
  const double wall_;
  const double compute_;
  const TierChoice tiers_;
  const std::optional<Pipeline> pipeline_;  ///< what can be simulated
  Verdict verdict_;
  StageWork work_ = StageWork::other;  // of the verdict's stage
};

}  // namespace

Verdict diagnose(const Snapshot& window) {
  return Diagnosis(in_samples(window)).make();
}

}  // namespace penstock
