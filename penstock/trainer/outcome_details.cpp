#include "penstock/trainer/outcome_details.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kBins = 31;

template <class Number>
std::size_t index_of(Number number) {
  return static_cast<std::size_t>(number);
}

/// Numbers of rows, those of the highest loss first.
std::vector<std::size_t> worst_of(std::span<const double> losses) {
  std::vector<std::size_t> rows(losses.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const auto most =
      static_cast<std::ptrdiff_t>(std::min(rows.size(), kWorstRows));
  std::ranges::partial_sort(
      rows, rows.begin() + most, [&](std::size_t a, std::size_t b) {
        return losses[a] != losses[b] ? losses[a] > losses[b] : a < b;
      });
  rows.resize(index_of(most));
  return rows;
}

/// `shown` makes of a row what its truth and its guess are.
template <class Shown>
Json worst_json(std::span<const Outcome> rows, Shown shown) {
  std::vector<double> losses;
  for (const Outcome& row : rows) losses.push_back(row.loss);
  Json json(Json::Array{});
  for (std::size_t at : worst_of(losses)) {
    Json entry;
    entry["sample"] = rows[at].sample;
    entry["loss"] = rows[at].loss;
    entry["truth"] = shown(rows[at].truth);
    entry["guess"] = shown(rows[at].guess);
    json.push_back(std::move(entry));
  }
  return json;
}

/// Rows of a class: that have it, that were said to have it, and both.
struct ClassRows {
  std::int64_t there = 0, said = 0, right = 0;
};

/// Classes by how many rows have them, the most first.
std::vector<std::int64_t> largest(const std::vector<ClassRows>& classes) {
  std::vector<std::int64_t> order(classes.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int64_t at) {
    return classes[index_of(at)].there;
  });
  if (std::ssize(order) > kMostClasses) order.resize(index_of(kMostClasses));
  return order;
}

Json share(std::int64_t part, std::int64_t whole) {
  return whole == 0
             ? Json()
             : Json(static_cast<double>(part) / static_cast<double>(whole));
}

Json by_class(const std::vector<ClassRows>& classes,
              const std::vector<std::int64_t>& order) {
  Json json(Json::Array{});
  for (std::int64_t at : order) {
    const ClassRows& rows = classes[index_of(at)];
    Json entry;
    entry["class"] = at;
    entry["rows"] = rows.there;
    entry["precision"] = share(rows.right, rows.said);
    entry["recall"] = share(rows.right, rows.there);
    json.push_back(std::move(entry));
  }
  return json;
}

Json confusion_of(std::span<const Outcome> rows, std::int64_t classes,
                  std::vector<std::int64_t> order) {
  std::ranges::sort(order);
  const std::size_t shown = order.size();
  const bool others = std::ssize(order) < classes;
  std::vector<std::size_t> place(index_of(classes), shown);
  for (std::size_t i = 0; i < shown; ++i) place[index_of(order[i])] = i;
  std::vector<std::vector<std::int64_t>> counts(
      shown + others, std::vector<std::int64_t>(shown + others));
  for (const Outcome& row : rows)
    ++counts[place[index_of(row.truth)]][place[index_of(row.guess)]];
  Json json;
  json["classes"] = Json(Json::Array{});
  for (std::int64_t at : order) json["classes"].push_back(at);
  json["others"] = classes - std::ssize(order);
  json["counts"] = Json(Json::Array{});
  for (const std::vector<std::int64_t>& line : counts) {
    Json row(Json::Array{});
    for (std::int64_t count : line) row.push_back(count);
    json["counts"].push_back(std::move(row));
  }
  return json;
}

/// The most frequent class of the train rows, guessed for every held-out row;
/// its loss is that of guessing the classes' shares.
Json class_baseline(std::span<const Outcome> rows, std::int64_t classes,
                    const ConstantGuess& constant) {
  std::vector<std::int64_t> counts = constant.counts;
  const bool of_train = std::ssize(counts) == classes;
  if (!of_train) counts.assign(index_of(classes), 0);
  if (!of_train)
    for (const Outcome& row : rows) ++counts[index_of(row.truth)];
  const double all = static_cast<double>(
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const auto most = std::ranges::max_element(counts) - counts.begin();
  std::int64_t right = 0;
  double loss = 0;
  for (const Outcome& row : rows) {
    right += row.truth == static_cast<double>(most) ? 1 : 0;
    loss -= std::log(static_cast<double>(counts[index_of(row.truth)]) / all);
  }
  Json json;
  json["of"] = of_train ? "train" : "val";
  json["class"] = static_cast<std::int64_t>(most);
  json["val_accuracy"] = share(right, std::ssize(rows));
  json["val_loss"] = loss / static_cast<double>(rows.size());  // null: infinite
  return json;
}

/// Of what guesses are off by: counts in bins of equal width.
Json histogram(const std::vector<double>& errors) {
  const auto [low, high] = std::ranges::minmax(errors);
  const double width = (high - low) / static_cast<double>(kBins);
  std::vector<std::int64_t> counts(kBins);
  for (double error : errors)
    ++counts[width > 0 ? std::min(kBins - 1, index_of((error - low) / width))
                       : 0];
  Json json;
  json["from"] = low;
  json["to"] = high;
  json["counts"] = Json(Json::Array{});
  for (std::int64_t count : counts) json["counts"].push_back(count);
  return json;
}

double mean_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) /
         static_cast<double>(numbers.size());
}

/// The great-circle distance in km, by the haversine formula.
double km_between(const MeanPlace& a, const MeanPlace& b) {
  constexpr double kRadians = std::numbers::pi / 180, kRadiusKm = 6371.0088;
  const double north = std::sin((a.latitude - b.latitude) * kRadians / 2);
  const double east = std::sin((a.longitude - b.longitude) * kRadians / 2);
  const double h = north * north + std::cos(a.latitude * kRadians) *
                                       std::cos(b.latitude * kRadians) * east *
                                       east;
  return 2 * kRadiusKm * std::asin(std::sqrt(std::clamp(h, 0.0, 1.0)));
}

MeanPlace mean_place(std::span<const PlaceOutcome> rows) {
  MeanPlace mean;
  for (const PlaceOutcome& row : rows)
    mean.latitude += row.latitude, mean.longitude += row.longitude;
  mean.latitude /= static_cast<double>(rows.size());
  mean.longitude /= static_cast<double>(rows.size());
  return mean;
}

Json number_baseline(const std::vector<double>& truths, double mean,
                     bool of_train) {
  double squares = 0, sizes = 0;
  for (double truth : truths) {
    squares += (truth - mean) * (truth - mean);
    sizes += std::abs(truth - mean);
  }
  const auto rows = static_cast<double>(truths.size());
  Json json;
  json["of"] = of_train ? "train" : "val";
  json["mean"] = mean;
  json["val_rmse"] = std::sqrt(squares / rows);
  json["val_mae"] = sizes / rows;
  return json;
}

}  // namespace

Json class_details(std::span<const Outcome> rows, std::int64_t classes,
                   const ConstantGuess& constant) {
  if (rows.empty()) return {};
  std::vector<ClassRows> of_class(index_of(classes));
  for (const Outcome& row : rows) {
    ++of_class[index_of(row.truth)].there;
    ++of_class[index_of(row.guess)].said;
    if (row.truth == row.guess) ++of_class[index_of(row.truth)].right;
  }
  const std::vector<std::int64_t> order = largest(of_class);
  Json json;
  json["baseline"] = class_baseline(rows, classes, constant);
  json["confusion"] = confusion_of(rows, classes, order);
  json["by_class"] = by_class(of_class, order);
  json["worst"] = worst_json(rows, [](double number) {
    return Json(static_cast<std::int64_t>(number));
  });
  return json;
}

Json label_details(const LabelOutcomes& outcomes) {
  if (outcomes.rows() == 0) return {};
  const std::size_t labels = index_of(outcomes.labels);
  std::vector<ClassRows> of_label(labels);
  for (std::size_t at = 0; at < outcomes.scores.size(); ++at) {
    ClassRows& of = of_label[at % labels];
    const bool truth = outcomes.truths[at], said = outcomes.scores[at] > 0;
    of.there += truth ? 1 : 0;
    of.said += said ? 1 : 0;
    of.right += truth && said ? 1 : 0;
  }
  Json json;
  json["by_class"] = by_class(of_label, largest(of_label));
  json["worst"] = Json(Json::Array{});
  for (std::size_t row : worst_of(outcomes.losses)) {
    Json entry;
    entry["sample"] = outcomes.samples[row];
    entry["loss"] = outcomes.losses[row];
    entry["truth"] = Json(Json::Array{});
    entry["guess"] = Json(Json::Array{});
    for (std::size_t label = 0; label < labels; ++label) {
      const auto number = static_cast<std::int64_t>(label);
      const std::size_t at = row * labels + label;
      if (outcomes.truths[at] &&
          std::ssize(entry["truth"].array()) < kMostClasses)
        entry["truth"].push_back(number);
      if (outcomes.scores[at] > 0 &&
          std::ssize(entry["guess"].array()) < kMostClasses)
        entry["guess"].push_back(number);
    }
    json["worst"].push_back(std::move(entry));
  }
  return json;
}

Json number_details(std::span<const Outcome> rows,
                    const ConstantGuess& constant) {
  if (rows.empty()) return {};
  auto own = [&](double number) {
    return constant.zero + constant.unit * number;
  };
  std::vector<double> truths, errors;
  for (const Outcome& row : rows) {
    truths.push_back(own(row.truth));
    errors.push_back(constant.unit * (row.guess - row.truth));
  }
  Json json;
  json["baseline"] = number_baseline(
      truths, constant.known ? constant.zero : mean_of(truths), constant.known);
  Json& residuals = json["residuals"];
  residuals["mean"] = mean_of(errors);
  residuals["histogram"] = histogram(errors);
  residuals["points"] = Json(Json::Array{});
  const std::size_t each = (rows.size() - 1) / index_of(kMostPoints) + 1;
  for (std::size_t at = 0; at < rows.size(); at += each)
    residuals["points"].push_back(
        Json(Json::Array{truths[at], truths[at] + errors[at]}));
  json["worst"] =
      worst_json(rows, [&](double number) { return Json(own(number)); });
  return json;
}

Json text_details(std::span<const TextOutcome> rows) {
  if (rows.empty()) return {};
  std::vector<double> losses;
  for (const TextOutcome& row : rows) losses.push_back(row.loss);
  Json json;
  json["worst"] = Json(Json::Array{});
  for (std::size_t at : worst_of(losses)) {
    Json entry;
    entry["sample"] = rows[at].sample;
    entry["loss"] = rows[at].loss;
    entry["tokens"] = rows[at].tokens;
    json["worst"].push_back(std::move(entry));
  }
  return json;
}

Json place_details(std::span<const PlaceOutcome> rows,
                   const std::optional<MeanPlace>& mean) {
  if (rows.empty()) return {};
  const MeanPlace constant = mean ? *mean : mean_place(rows);
  std::vector<double> km, constant_km;
  for (const PlaceOutcome& row : rows) {
    km.push_back(row.km);
    constant_km.push_back(km_between(constant, {row.latitude, row.longitude}));
  }
  Json json;
  Json& baseline = json["baseline"];
  baseline["of"] = mean ? "train" : "val";
  baseline["place"] = Json(Json::Array{constant.latitude, constant.longitude});
  baseline["val_mean_km"] = mean_of(constant_km);
  baseline["val_median_km"] = median_of(std::move(constant_km));
  json["residuals"]["unit"] = "km";
  json["residuals"]["mean"] = mean_of(km);
  json["residuals"]["histogram"] = histogram(km);
  json["worst"] = Json(Json::Array{});
  for (std::size_t at : worst_of(km)) {
    const PlaceOutcome& row = rows[at];
    Json entry;
    entry["sample"] = row.sample;
    entry["loss"] = row.loss;
    entry["km"] = row.km;
    entry["truth"] = Json(Json::Array{row.latitude, row.longitude});
    entry["guess"] =
        Json(Json::Array{row.guessed_latitude, row.guessed_longitude});
    json["worst"].push_back(std::move(entry));
  }
  return json;
}

double median_of(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace penstock
