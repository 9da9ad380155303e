#include "penstock/trainer/models/set_position/validation.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <utility>

#include "penstock/session/session.h"
#include "penstock/trainer/ranks/rank_share.h"

namespace penstock {

double deviations_within_90() { return std::sqrt(-2 * std::log(0.1)); }

void Validation::add(const PlacesOfBatch& batch) {
  auto exact = [](const at::Tensor& tensor) {
    return tensor.detach().to(at::kDouble);
  };
  const at::Tensor truth = exact(batch.truth), guess = exact(batch.guess);
  seen_.push_back(
      at::stack({exact(batch.loss), exact(batch.km), exact(batch.deviations),
                 exact(batch.weight), truth.select(1, 0), truth.select(1, 1),
                 guess.select(1, 0), guess.select(1, 1)}));
  const std::size_t rows =
      samples_.size() + static_cast<std::size_t>(batch.loss.size(0));
  samples_.insert(samples_.end(), batch.samples.begin(), batch.samples.end());
  samples_.resize(rows, -1);
}

struct Validation::Place : PlaceOutcome {
  double deviations = 0;
};

/// Of all rows that count.
std::vector<Validation::Place> Validation::places() {
  std::vector<Place> all;
  if (seen_.empty()) return all;
  const at::Tensor rows = at::cat(seen_, 1).to(at::kCPU).t().contiguous();
  seen_.clear();
  const std::vector<SampleId> samples = std::exchange(samples_, {});
  const double* row = rows.const_data_ptr<double>();
  for (std::size_t at = 0; at < samples.size(); ++at, row += rows.size(1)) {
    if (row[3] == 0) continue;
    const PlaceOutcome seen{.loss = row[0],
                            .km = row[1],
                            .latitude = row[4],
                            .longitude = row[5],
                            .guessed_latitude = row[6],
                            .guessed_longitude = row[7],
                            .sample = samples[at]};
    all.push_back({seen, row[2]});
  }
  return all;
}

Validated Validation::take(RankShare* ranks) {
  Validated found;
  const double most_deviations = deviations_within_90();
  std::vector<PlaceOutcome> kept;
  std::vector<double> km;
  double loss = 0, sum_km = 0, within = 0;
  for (const Place& row : of_all_ranks(ranks, places())) {
    kept.push_back(row);
    loss += row.loss;
    km.push_back(row.km);
    sum_km += row.km;
    within += row.deviations <= most_deviations ? 1 : 0;
  }
  if (km.empty()) return found;
  const auto count = static_cast<double>(km.size());
  Json& json = found.metrics;
  json["val_loss"] = loss / count;
  json["val_median_km"] = median_of(std::move(km));
  json["val_mean_km"] = sum_km / count;
  // A model that knows how sure it is has 0.9 here.
  json["val_within_90"] = within / count;
  found.details = place_details(kept, mean_);
  return found;
}

}  // namespace penstock
