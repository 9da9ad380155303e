#include "penstock/advisor/outside.h"

#include <algorithm>
#include <cmath>

#include "penstock/advisor/gain.h"
#include "penstock/advisor/thresholds.h"
#include "penstock/base/formatted.h"
#include "penstock/base/shown.h"

// Checkpoints. The loop waits while a model is copied; a thread then writes the
// copy beside the next steps. A checkpoint that falls due before it is written
// waits for it, and so does the end of the run. With one every `n` steps of
// `s` seconds the loop waits, for each but the last,
//
//     copy + max(0, write - n s)
//
// and for the last copy + write.

namespace penstock {
namespace {

constexpr double kLeast = 0.25;      // seconds: less is not worth a setting
constexpr double kCopying = 0.05;    // of the time of the steps between two
constexpr double kValidating = 0.1;  // of the rest of the wall time

double longest_part_s(const StepParts& steps) {
  return seconds(std::max({steps.compute, steps.wait_data, steps.wait_copy,
                           steps.host, steps.sync}));
}

/// 1, 2, 5, 10, 20, ...: the first that is not below.
std::int64_t round_up(double least) {
  std::int64_t power = 1;
  for (;; power *= 10)
    for (std::int64_t digit : {1, 2, 5})
      if (static_cast<double>(power * digit) >= least) return power * digit;
}

std::string percent_of(double part, double wall) {
  return shown_percent(part / wall, 0);
}

class WholeTime {
 public:
  WholeTime(Verdict verdict, const OutsideTime& time)
      : verdict_(std::move(verdict)), time_(time) {}

  Verdict make() && {
    if (time_.wall_s <= 0 || time_.recurring_s() < kLeast)
      return std::move(verdict_);
    const bool limits = time_.recurring_s() > longest_part_s(time_.steps);
    if (limits) outside_limits();
    const double least = limits ? kSmallestGain : kWorthWhileBusy;
    for (auto action : {fewer_checkpoints(), fewer_validations()})
      if (action && action->predicted_gain >= least)
        verdict_.actions.push_back(std::move(*action));
    std::ranges::stable_sort(verdict_.actions,
                             [](const Action& a, const Action& b) {
                               return a.predicted_gain > b.predicted_gain;
                             });
    if (!verdict_.actions.empty()) verdict_.no_action.clear();
    return std::move(verdict_);
  }

 private:
  void outside_limits() {
    const double checkpoints = time_.checkpoints.waited_s,
                 validation = time_.validations.seconds;
    const bool more_saving = checkpoints >= validation;
    const double most = std::max(checkpoints, validation);
    verdict_.limit = Limit::outside;
    verdict_.stage.clear();
    verdict_.cause = std::string(more_saving ? "checkpoints" : "validation") +
                     (more_saving ? " take " : " takes ") +
                     percent_of(most, time_.wall_s) + " of the wall time";
    verdict_.because = measured() + "; " + verdict_.because;
    verdict_.no_action =
        more_saving ? "fewer checkpoints are not possible in this run: write "
                      "them to a faster drive with output.dir"
                    : "less frequent validation is not possible in this run: "
                      "hold out fewer rows with split.val";
    rescale();
  }

  std::string measured() const {
    const OutsideTime::Checkpoints& saved = time_.checkpoints;
    std::string text = formatted(
        "of %.3g s the steps took %s, checkpoints %s, validation %s and the "
        "rest %s",
        time_.wall_s, percent_of(time_.window_s(), time_.wall_s).c_str(),
        percent_of(saved.waited_s, time_.wall_s).c_str(),
        percent_of(time_.validations.seconds, time_.wall_s).c_str(),
        percent_of(time_.other_s() + time_.epoch_start_s, time_.wall_s)
            .c_str());
    if (saved.times > 0) {
      const auto times = static_cast<double>(saved.times);
      text += formatted(
          "; each of %.0f checkpoints is copied in %.3g s, while the loop "
          "waits, and written in %.3g s, while it continues",
          times, saved.copying_s / times, saved.writing_s / times);
    }
    return text;
  }

  /// The gains of the steps' rate become those of the whole.
  void rescale() {
    const double steps = time_.window_s();
    for (Action& action : verdict_.actions) {
      const double saved = steps * (1 - 1 / (1 + action.predicted_gain));
      action.predicted_gain = gain_of(saved);
    }
    std::erase_if(verdict_.actions, [](const Action& action) {
      return action.predicted_gain < kSmallestGain;
    });
  }

  double gain_of(double saved_s) const {
    return time_.wall_s / std::max(1e-9, time_.wall_s - saved_s) - 1;
  }

  std::optional<Action> fewer_checkpoints() const {
    const OutsideTime::Checkpoints& saved = time_.checkpoints;
    if (saved.times < 2 || time_.steps.steps < 1) return std::nullopt;
    const auto times = static_cast<double>(saved.times);
    const double copy = saved.copying_s / times,
                 write = saved.writing_s / times,
                 step =
                     time_.window_s() / static_cast<double>(time_.steps.steps);
    const auto steps = static_cast<double>(time_.steps.steps);
    const double before =
        saved.every ? static_cast<double>(*saved.every) : steps / times;
    if (step <= 0) return std::nullopt;
    const double needed = std::max(write, copy / kCopying) / step;
    const std::int64_t every = round_up(needed);
    const auto after = static_cast<double>(every);
    if (after <= before) return std::nullopt;
    const double left = std::ceil(steps / after);
    const double waits =
        left * copy + write + (left - 1) * std::max(0.0, write - after * step);
    return Action{.knob = "train.checkpoint_every_steps",
                  .from = saved.every ? Json(*saved.every) : Json(),
                  .to = every,
                  .predicted_gain = gain_of(saved.waited_s - waits),
                  .cost = "up to " + std::to_string(every) +
                          " steps to take again after a crash"};
  }

  std::optional<Action> fewer_validations() const {
    const OutsideTime::Validations& seen = time_.validations;
    if (seen.times < 2) return std::nullopt;
    const auto times = static_cast<double>(seen.times);
    const double rest = time_.wall_s - seen.seconds;
    const double fewer =
        std::min(times, std::ceil(seen.seconds / (kValidating * rest)));
    if (!(fewer > 1)) return std::nullopt;
    const std::int64_t epochs = seen.every * seen.times;
    const std::int64_t every =
        std::min(epochs, round_up(fewer * static_cast<double>(seen.every)));
    const auto left =
        static_cast<double>((epochs + every - 1) / every);  // and the last
    return Action{.knob = "train.validate_every_epochs",
                  .from = seen.every,
                  .to = every,
                  .predicted_gain = gain_of(seen.seconds * (1 - left / times)),
                  .cost = "a validation loss only once in " +
                          std::to_string(every) + " epochs"};
  }

  Verdict verdict_;
  const OutsideTime& time_;
};

}  // namespace

double OutsideTime::other_s() const {
  return std::max(0.0, wall_s - window_s() - checkpoints.waited_s -
                           validations.seconds - epoch_start_s);
}

Json OutsideTime::json() const {
  Json json;
  json["checkpoint_s"] = checkpoints.waited_s;
  json["validation_s"] = validations.seconds;
  json["epoch_start_s"] = epoch_start_s;
  json["other_s"] = other_s();
  return json;
}

Verdict with_outside(Verdict window, const OutsideTime& time) {
  return WholeTime(std::move(window), time).make();
}

}  // namespace penstock
