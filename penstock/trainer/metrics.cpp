#include "penstock/trainer/metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock {
namespace {

template <class Of>
double mean(std::span<const Outcome> rows, Of of) {
  double sum = 0;
  for (const Outcome& row : rows) sum += of(row);
  return sum / static_cast<double>(rows.size());
}

// The mean over the classes that occur, as truth or as guess, of 2 TP / (said +
// there), which is the harmonic mean of precision and recall.
double macro_f1(std::span<const Outcome> rows, std::int64_t classes) {
  struct Counts {
    double right = 0, said = 0, there = 0;
  };
  std::vector<Counts> of_class(static_cast<std::size_t>(classes));
  for (const Outcome& row : rows) {
    auto truth = static_cast<std::size_t>(row.truth);
    ++of_class[truth].there;
    ++of_class[static_cast<std::size_t>(row.guess)].said;
    if (row.truth == row.guess) ++of_class[truth].right;
  }
  double sum = 0, seen = 0;
  for (const Counts& counts : of_class) {
    if (counts.said + counts.there == 0) continue;
    sum += 2 * counts.right / (counts.said + counts.there);
    ++seen;
  }
  return sum / seen;
}

/// By ranks (Mann and Whitney): rows of equal score share the mean of theirs.
Json auc(std::span<const Outcome> rows) {
  struct Scored {
    float score, truth;
  };
  std::vector<Scored> sorted;
  sorted.reserve(rows.size());
  for (const Outcome& row : rows) sorted.push_back({row.score, row.truth});
  std::ranges::sort(sorted, {}, &Scored::score);
  double ranks = 0, second = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i;
    double of_second = 0;
    for (; end < sorted.size() && sorted[end].score == sorted[i].score; ++end)
      of_second += sorted[end].truth;
    ranks += of_second * (static_cast<double>(i + 1 + end) / 2);
    second += of_second;
    i = end;
  }
  const double first = static_cast<double>(sorted.size()) - second;
  if (first == 0 || second == 0) return nullptr;
  // With R the sum of the ranks of n1 rows of the second class, among n0 of the
  // first: U / (n0 n1) with U = R - n1 (n1 + 1) / 2, the share of pairs in
  // which the second class scores higher, ties counting half.
  return (ranks - second * (second + 1) / 2) / (first * second);
}

}  // namespace

Json class_metrics(std::span<const Outcome> rows, std::int64_t classes) {
  Json json{Json::Object{}};
  if (rows.empty()) return json;
  json["val_loss"] = mean(
      rows, [](const Outcome& row) { return static_cast<double>(row.loss); });
  json["val_accuracy"] = mean(rows, [](const Outcome& row) {
    return row.truth == row.guess ? 1.0 : 0.0;
  });
  if (classes == 2) json["val_auc"] = auc(rows);
  json["val_macro_f1"] = macro_f1(rows, classes);
  return json;
}

Json balance_metrics(std::span<const Outcome> rows, std::int64_t classes) {
  Json json{Json::Object{}};
  if (rows.empty()) return json;
  std::vector<double> right(static_cast<std::size_t>(classes)), there(right);
  for (const Outcome& row : rows) {
    const auto truth = static_cast<std::size_t>(row.truth);
    ++there[truth];
    if (row.truth == row.guess) ++right[truth];
  }
  double sum = 0, seen = 0, least = 1;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i] == 0) continue;
    const double recall = right[i] / there[i];
    sum += recall, ++seen, least = std::min(least, recall);
  }
  json["val_balanced_accuracy"] = sum / seen;
  json["val_least_recall"] = least;
  return json;
}

double top_share(std::span<const Outcome> rows, std::int64_t first) {
  return mean(rows, [first](const Outcome& row) {
    return row.before < static_cast<float>(first) ? 1.0 : 0.0;
  });
}

Json number_metrics(std::span<const Outcome> rows, double unit) {
  Json json{Json::Object{}};
  if (rows.empty()) return json;
  auto error = [](const Outcome& row) {
    return static_cast<double>(row.guess) - static_cast<double>(row.truth);
  };
  json["val_loss"] = mean(
      rows, [](const Outcome& row) { return static_cast<double>(row.loss); });
  json["val_rmse"] = unit * std::sqrt(mean(rows, [&](const Outcome& row) {
                       return error(row) * error(row);
                     }));
  json["val_mae"] = unit * mean(rows, [&](const Outcome& row) {
                      return std::abs(error(row));
                    });
  return json;
}

}  // namespace penstock
