#include <algorithm>
#include <functional>
#include <numeric>

#include "penstock/trainer/metrics.h"

namespace penstock {
namespace {

struct Counts {
  double right = 0, said = 0, there = 0;

  double f1() const {
    return said + there == 0 ? 1 : 2 * right / (said + there);
  }
};

/// Over the places where the score falls: how many more of the true ones are
/// found there, times how many of those found so far are true.
/// Sum over the thresholds n of (R_n - R_n-1) P_n: recall gained times
/// precision, without interpolation. Rows of equal score share a threshold.
double average_precision(std::vector<std::pair<double, bool>> rows,
                         double there) {
  std::ranges::sort(rows, std::greater(), &std::pair<double, bool>::first);
  double sum = 0, right = 0;
  for (std::size_t i = 0; i < rows.size();) {
    double more = 0;
    const double score = rows[i].first;
    for (; i < rows.size() && rows[i].first == score; ++i)
      more += rows[i].second ? 1 : 0;
    right += more;
    sum += more / there * right / static_cast<double>(i);
  }
  return sum;
}

}  // namespace

Json label_metrics(const LabelOutcomes& outcomes) {
  Json json{Json::Object{}};
  const auto rows = static_cast<std::size_t>(outcomes.rows());
  const auto labels = static_cast<std::size_t>(outcomes.labels);
  if (rows == 0) return json;
  Counts all;
  std::vector<bool> right(rows, true);
  double f1 = 0, precision = 0, seen = 0, held = 0;
  for (std::size_t label = 0; label < labels; ++label) {
    Counts counts;
    std::vector<std::pair<double, bool>> scored;
    for (std::size_t row = 0; row < rows; ++row) {
      const double score = outcomes.scores[row * labels + label];
      const bool truth = outcomes.truths[row * labels + label];
      const bool said = score > 0;
      counts.there += truth ? 1 : 0;
      counts.said += said ? 1 : 0;
      counts.right += truth && said ? 1 : 0;
      if (truth != said) right[row] = false;
      scored.emplace_back(score, truth);
    }
    all.right += counts.right;
    all.said += counts.said;
    all.there += counts.there;
    if (counts.said + counts.there > 0) {
      f1 += counts.f1();
      ++seen;
    }
    if (counts.there == 0) continue;
    precision += average_precision(std::move(scored), counts.there);
    ++held;
  }
  const auto count = static_cast<double>(rows);
  json["val_loss"] =
      std::accumulate(outcomes.losses.begin(), outcomes.losses.end(), 0.0) /
      count;
  json["val_exact_match"] =
      static_cast<double>(std::ranges::count(right, true)) / count;
  json["val_micro_f1"] = all.f1();
  json["val_macro_f1"] = seen == 0 ? 1 : f1 / seen;
  json["val_map"] = held == 0 ? Json() : Json(precision / held);
  return json;
}

}  // namespace penstock
