#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "penstock/models/set_position/descriptor.h"
#include "penstock/trainer/autocast.h"
#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/models/set_position/augment.h"
#include "penstock/trainer/models/set_position/geometry.h"
#include "penstock/trainer/models/set_position/network.h"
#include "penstock/trainer/models/set_position/validation.h"
#include "penstock/trainer/trainer.h"

// A loss, from the batch: ReceiverAugment leaves some receivers out and adds
// noise to what they heard -> plane_of() undoes the standardisation and puts
// each row's receivers on a plane around their inner centroid -> the network
// sees every receiver's numbers and its place on that plane, and answers where
// the transmitter is and how sure it is of that -> the loss is the negative
// log-likelihood of the true place.
namespace penstock {
namespace {

// The network may be this sure and unsure: exp(8) is three thousand.
constexpr double kMostLogSigma = 8;

/// What a batch holds, as tensors of libtorch.
struct Inputs {
  at::Tensor set;     // [rows, max, keys]
  at::Tensor mask;    // [rows, max]
  at::Tensor target;  // [rows, 2]; undefined where the batch has none
  at::Tensor weight;  // [rows], 0 for padding
};

/// What the network says of a batch, on the planes of its rows.
struct Prediction {
  at::Tensor place;      // [rows, 2], in units of the spread
  at::Tensor log_sigma;  // [rows], of the same unit
};

std::vector<Standardization> statistics_of(const FittedFields& data,
                                           const std::string& name) {
  if (std::ranges::find(data.fields, name, &Field::name) == data.fields.end())
    throw Error(ErrorKind::request, {.code = "model.no_field",
                                     .what = "cannot make the model",
                                     .where = "model",
                                     .why = "there is no field '" + name + "'",
                                     .next = "name a field of the job"});
  return standardizations_from(data.statistics_of(name));
}

/// The number of a key or column, and what undoes its standardisation.
std::pair<std::int64_t, Scale> number_and_scale(
    const std::vector<Standardization>& standards, const std::string& name) {
  auto found = std::ranges::find(standards, name, &Standardization::name);
  auto refuse = [&](std::string why) {
    throw Error(ErrorKind::request, {.code = "model.key",
                                     .what = "cannot make the model",
                                     .where = "key '" + name + "'",
                                     .why = std::move(why),
                                     .next = "name a key that holds numbers"});
  };
  if (found == standards.end()) refuse("the set has no such key");
  if (found->boolean) refuse("the key holds true and false, expected numbers");
  return {found - standards.begin(), scale_of(*found)};
}

Geography geography_of(const SetPosition& settings, const FittedFields& data) {
  const auto set = statistics_of(data, settings.set);
  const auto target = statistics_of(data, settings.target);
  Geography geography;
  std::tie(geography.latitude, geography.latitude_scale) =
      number_and_scale(set, settings.latitude);
  std::tie(geography.longitude, geography.longitude_scale) =
      number_and_scale(set, settings.longitude);
  std::tie(geography.strength, geography.strength_scale) =
      number_and_scale(set, settings.strength);
  geography.target_latitude_scale = scale_of(target[0]);
  geography.target_longitude_scale = scale_of(target[1]);
  return geography;
}

std::int64_t keys_of(const SetPosition& settings, const FittedFields& data) {
  return std::ssize(statistics_of(data, settings.set));
}

/// The target's columns, and how far off the place is at most in nine of ten
/// rows, as the model itself states it.
AnswerFacts answers_about(const SetPosition& settings,
                          const FittedFields& data) {
  AnswerFacts answers;
  for (const Standardization& column : statistics_of(data, settings.target))
    answers.names.emplace_back(column.name);
  answers.names.emplace_back("within_90_km");
  return answers;
}

/// Where the target is standardised, its mean is known.
std::optional<MeanPlace> mean_place_of(const SetPosition& settings,
                                       const FittedFields& data) {
  const auto target = statistics_of(data, settings.target);
  if (!target[0].standardize || !target[1].standardize) return std::nullopt;
  return MeanPlace{target[0].mean, target[1].mean};
}

class SetPositionModel final : public Model {
 public:
  SetPositionModel(const ModelSpec& spec, const FittedFields& data,
                   const at::TensorOptions& options)
      : settings_(set_position_of(spec)),
        keys_(keys_of(settings_, data)),
        geography_(geography_of(settings_, data)),
        spread_km_(spread_km(geography_)),
        augment_{settings_.dropout,
                 settings_.noise_db / geography_.strength_scale.divisor,
                 settings_.seed},
        precision_(spec.learning.precision),
        device_(options.device()),
        network_({.inputs = keys_ + 2, .width = settings_.width},
                 settings_.seed, options),
        validation_(mean_place_of(settings_, data)) {
    facts_ = {.parameters = network_.parameters(),
              .answers = answers_about(settings_, data),
              .description = description()};
  }

  MeanLoss loss(const BatchRows& batch, const DrawnFor& rows_here) override {
    Inputs inputs = inputs_of(batch);
    inputs.mask = augment_.heard(inputs.mask, rows_here);
    inputs.set = augment_.noisy(inputs.set, geography_.strength, rows_here);
    LocalTangentPlane plane = plane_of(geography_, inputs.set, inputs.mask);
    Prediction guess = guess_of(inputs, plane);
    at::Tensor truth = on_plane(geography_, plane, inputs.target) / spread_km_;
    at::Tensor counted = inputs.weight.sum();
    at::Tensor sum = (losses(guess, truth) * inputs.weight).sum();
    return {sum / counted.clamp_min(1), counted};
  }

  at::Tensor look(const BatchRows& batch) override {
    Inputs inputs = inputs_of(batch);
    LocalTangentPlane plane = plane_of(geography_, inputs.set, inputs.mask);
    Prediction guess = guess_of(inputs, plane);
    at::Tensor within = guess.log_sigma.exp().to(at::kDouble) *
                        (spread_km_ * deviations_within_90());
    const at::Tensor place =
        place_of(geography_, plane, guess.place * spread_km_);
    at::Tensor said = at::cat({place, within.unsqueeze(1)}, 1);
    // Last: rows that were counted cannot be looked at again.
    if (inputs.target.defined())
      measure(inputs, plane, guess, {.guess = place, .samples = batch.ids()});
    return said;
  }

  Validated seen(RankShare* ranks) override { return validation_.take(ranks); }

 private:
  void measure(const Inputs& inputs, const LocalTangentPlane& plane,
               const Prediction& guess, PlacesOfBatch seen) {
    at::Tensor truth = on_plane(geography_, plane, inputs.target) / spread_km_;
    seen.loss = losses(guess, truth);
    seen.km =
        distance_km(geography_, plane, guess.place * spread_km_, inputs.target);
    seen.deviations = seen.km / (guess.log_sigma.exp() * spread_km_);
    seen.weight = inputs.weight;
    seen.truth = place_of(geography_, plane, truth * spread_km_);
    validation_.add(seen);
  }

  Json description() const {
    Json json;
    json["kind"] = "set_position";
    json["set"] = settings_.set;
    json["target"] = settings_.target;
    json["latitude"] = settings_.latitude;
    json["longitude"] = settings_.longitude;
    json["strength"] = settings_.strength;
    json["keys"] = keys_;
    json["width"] = settings_.width;
    json["dropout"] = settings_.dropout;
    json["noise_db"] = settings_.noise_db;
    json["seed"] = static_cast<std::int64_t>(settings_.seed);
    json["spread_km"] = spread_km_;
    return json;
  }

  Inputs inputs_of(const BatchRows& batch) const {
    return {.set = tensor_of(batch, settings_.set),
            .mask = tensor_of(batch, settings_.set + "_mask"),
            .target = has_tensor(batch, settings_.target)
                          ? tensor_of(batch, settings_.target)
                          : at::Tensor(),
            .weight = weights_of(batch)};
  }

  Prediction guess_of(const Inputs& inputs,
                      const LocalTangentPlane& plane) const {
    at::Tensor elements =
        at::cat({inputs.set, plane.receivers / spread_km_}, 2);
    const Autocast cast(device_, precision_);
    at::Tensor answers = network_(elements, inputs.mask).to(at::kFloat);
    return {
        .place = answers.slice(1, 0, 2),
        .log_sigma = answers.select(1, 2).clamp(-kMostLogSigma, kMostLogSigma)};
  }

  /// The negative log-likelihood of each row's true place: the prediction is
  /// the mean of a round normal distribution.
  ///   -log p = |x - m|^2 / (2 s^2) + 2 log s + log(2 pi)
  static at::Tensor losses(const Prediction& guess, const at::Tensor& truth) {
    at::Tensor squares = (guess.place - truth).square().sum(1);
    return squares * (guess.log_sigma * -2).exp() / 2 + guess.log_sigma * 2 +
           std::log(2 * std::numbers::pi);
  }

  const SetPosition settings_;
  const std::int64_t keys_;
  const Geography geography_;
  const double spread_km_;
  const ReceiverAugment augment_;
  const Dtype precision_;
  const at::Device device_;
  const SetNetwork network_;
  Validation validation_;
};

}  // namespace

std::unique_ptr<Model> make_set_position(const ModelSpec& spec,
                                         const FittedFields& data,
                                         const at::TensorOptions& options) {
  return std::make_unique<SetPositionModel>(spec, data, options);
}

}  // namespace penstock
