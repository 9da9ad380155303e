#include "penstock/demo/centroid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "penstock/models/set_position/descriptor.h"

namespace penstock {
namespace {

constexpr double kExponents[] = {1, 2, 4};

/// What undoes the standardisation of a key or column of a field.
Scale scale_in(const FittedFields& data, const std::string& field,
               std::size_t at) {
  return scale_of(standardizations_from(data.statistics_of(field)).at(at));
}

std::size_t key_at(const Field& field, const std::string& key) {
  const std::vector<std::string>& keys = field.kind->facts().set->keys;
  return static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin());
}

/// Numbers of a tensor of float32 or float64.
double number_at(const TensorView& view, std::size_t at) {
  if (view.dtype == Dtype::float32)
    return reinterpret_cast<const float*>(view.data)[at];
  return reinterpret_cast<const double*>(view.data)[at];
}

/// The errors of all rows of one side, by exponent.
struct Errors {
  std::vector<double> km[std::size(kExponents)];
};

// Weighted centroid localisation: the mean of the stations' places, each
// weighed by 10^(snr / (10 e)), its received power to the power 1 / e. Nothing
// is learned; the best of a few exponents is the baseline that a model must
// beat.
class Centroids {
 public:
  Centroids(const Job& job, const FittedFields& data)
      : model_(set_position_of(job.model)),
        set_(*std::ranges::find(data.fields, set_position_of(job.model).set,
                                &Field::name)),
        at_{key_at(set_, model_.latitude), key_at(set_, model_.longitude),
            key_at(set_, model_.strength)},
        latitude_(scale_in(data, model_.set, at_[0])),
        longitude_(scale_in(data, model_.set, at_[1])),
        strength_(scale_in(data, model_.set, at_[2])),
        target_latitude_(scale_in(data, model_.target, 0)),
        target_longitude_(scale_in(data, model_.target, 1)) {}

  void add(const Batch& batch, Errors& errors) const {
    const TensorView& set = tensor(batch, model_.set);
    const TensorView& mask = tensor(batch, model_.set + "_mask");
    const TensorView& target = tensor(batch, model_.target);
    auto max = static_cast<std::size_t>(set.shape[1]);
    auto keys = static_cast<std::size_t>(set.shape[2]);
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch.rows());
         ++row)
      for (std::size_t e = 0; e < std::size(kExponents); ++e) {
        double weights = 0, latitude = 0, longitude = 0;
        for (std::size_t j = row * max; j < (row + 1) * max; ++j) {
          if (number_at(mask, j) == 0) continue;
          double db = strength_.restored(number_at(set, j * keys + at_[2]));
          double weight = std::pow(10, db / (10 * kExponents[e]));
          weights += weight;
          latitude +=
              weight * latitude_.restored(number_at(set, j * keys + at_[0]));
          longitude +=
              weight * longitude_.restored(number_at(set, j * keys + at_[1]));
        }
        errors.km[e].push_back(haversine_km(
            latitude / weights, longitude / weights,
            target_latitude_.restored(number_at(target, 2 * row)),
            target_longitude_.restored(number_at(target, 2 * row + 1))));
      }
  }

 private:
  static const TensorView& tensor(const Batch& batch, const std::string& name) {
    return std::ranges::find(batch.tensors(), name, &NamedTensor::name)->view;
  }

  const SetPosition& model_;
  const Field& set_;
  const std::size_t at_[3];
  const Scale latitude_, longitude_, strength_;
  const Scale target_latitude_, target_longitude_;
};

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double haversine_km(double latitude, double longitude, double other_latitude,
                    double other_longitude) {
  constexpr double kRadius = 6371.0088;
  constexpr double kDegree = std::numbers::pi / 180;
  double north = std::sin((other_latitude - latitude) * kDegree / 2);
  double east = std::sin((other_longitude - longitude) * kDegree / 2);
  double h = north * north + std::cos(latitude * kDegree) *
                                 std::cos(other_latitude * kDegree) * east *
                                 east;
  return 2 * kRadius * std::asin(std::min(1.0, std::sqrt(h)));
}

CentroidError weighted_centroid(const Session& session, const Job& job) {
  const auto fitted = session.opened()->facts().fitted;
  Centroids centroids(job, *fitted);
  auto errors_of = [&](Side side) {
    Errors errors;
    if (session.rows().rows_on(side) == 0) return errors;
    std::unique_ptr<Loader> loader = session.open_side(side, Tail::exact);
    for (std::int64_t i = 0; i < loader->steps_per_epoch(); ++i)
      centroids.add(promised(loader->next()), errors);
    return errors;
  };
  Errors train = errors_of(Side::train), val = errors_of(Side::val);
  CentroidError best{.train_median_km =
                         std::numeric_limits<double>::infinity()};
  for (std::size_t e = 0; e < std::size(kExponents); ++e) {
    double km = median(train.km[e]);
    if (!(km < best.train_median_km)) continue;
    best = {.n = kExponents[e],
            .train_median_km = km,
            .val_median_km = median(val.km[e]),
            .val_rows = std::ssize(val.km[e])};
  }
  return best;
}

}  // namespace penstock
