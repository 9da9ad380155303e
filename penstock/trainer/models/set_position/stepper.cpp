#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "penstock/trainer/adamw.h"
#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/models/set_position/augment.h"
#include "penstock/trainer/models/set_position/descriptor.h"
#include "penstock/trainer/models/set_position/geometry.h"
#include "penstock/trainer/models/set_position/network.h"
#include "penstock/trainer/models/set_position/validation.h"
#include "penstock/trainer/pending_losses.h"
#include "penstock/trainer/schedule.h"
#include "penstock/trainer/serial_stream.h"
#include "penstock/trainer/staging.h"
#include "penstock/trainer/state.h"
#include "penstock/trainer/threads.h"
#include "penstock/trainer/torch_error.h"
#include "penstock/trainer/trainer.h"

// A step, from the batch to the new weights. The batch's tensors are borrowed
// where they lie -> Augment leaves some receivers out and adds noise to what
// they heard -> plane_of() undoes the standardisation and puts each row's
// receivers on a plane around their inner centroid -> the network sees every
// receiver's numbers and its place on that plane, and answers where the
// transmitter is and how sure it is of that -> the loss is the negative
// log-likelihood of the true place -> backward() leaves the gradients -> AdamW
// clips them and moves the weights, at the rate that the schedule has for the
// step's number -> the loss is copied to the host behind all that. It is queued
// on the batch's stream; only who asks for a number waits.
namespace penstock {
namespace {

// The network may be this sure and unsure: exp(8) is three thousand.
constexpr double kMostLogSigma = 8;

// What is drawn for a step is sent in two copies; this many steps may be in
// flight.
constexpr std::size_t kStagedSteps = 8;

/// What a batch holds, as tensors of libtorch.
struct Inputs {
  at::Tensor set;     // [rows, max, keys]
  at::Tensor mask;    // [rows, max]
  at::Tensor target;  // [rows, 2]
  at::Tensor weight;  // [rows], 0 for padding
};

/// What the network says of a batch, on the planes of its rows.
struct Prediction {
  at::Tensor place;      // [rows, 2], in units of the spread
  at::Tensor log_sigma;  // [rows], of the same unit
};

std::vector<Standardization> statistics_of(const TableDataset& data,
                                           const std::string& name) {
  if (std::ranges::find(data.fields(), name, &Field::name) ==
      data.fields().end())
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
  if (found->boolean) refuse("it holds true and false, expected numbers");
  return {found - standards.begin(), scale_of(*found)};
}

Geography geography_of(const SetPosition& settings, const TableDataset& data) {
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

std::int64_t keys_of(const SetPosition& settings, const TableDataset& data) {
  return std::ssize(statistics_of(data, settings.set));
}

/// Names with a prefix: a checkpoint distinguishes weights from the optimiser's
/// own.
void append(std::vector<Parameter>& all, const std::string& prefix,
            const std::vector<Parameter>& some) {
  for (const Parameter& one : some)
    all.push_back({prefix + one.name, one.value});
}

class SetPositionStepper final : public Stepper {
 public:
  SetPositionStepper(const ModelSpec& spec, const TableDataset& data,
                     Device& device, at::Device torch, std::int64_t steps)
      : settings_(set_position_of(spec)),
        threads_(threads_of(spec)),
        keys_(keys_of(settings_, data)),
        tensors_(data.layout().tensors.size()),
        schedule_{spec.learning.lr, spec.learning.warmup_steps, steps},
        geography_(geography_of(settings_, data)),
        spread_km_(spread_km(geography_)),
        augment_{settings_.dropout,
                 settings_.noise_db / geography_.strength_scale.divisor,
                 settings_.seed},
        turns_(device, torch),
        staging_(device, 2 * kStagedSteps),
        losses_(device),
        network_(turns_.now([&] {
          return SetNetwork({.inputs = keys_ + 2, .width = settings_.width},
                            settings_.seed,
                            at::TensorOptions(at::kFloat).device(torch));
        })),
        optimizer_(turns_.now([&] {
          return AdamW(network_.parameters(),
                       {.weight_decay = spec.learning.weight_decay,
                        .clip_norm = spec.learning.clip_norm});
        })) {}
  ~SetPositionStepper() override { turns_.finish(); }

  bool takes_time() const override { return true; }
  bool has_model() const override { return true; }

  void step(const Batch& batch, Stream& stream, std::int64_t number) override {
    turn("taking a step of the model", stream, [&] {
      Inputs inputs = inputs_of(batch);
      Augment::Dataset rows_here{batch.at().epoch, batch.ids(), staging_,
                                 stream};
      inputs.mask = augment_.heard(inputs.mask, rows_here);
      inputs.set = augment_.noisy(inputs.set, geography_.strength, rows_here);
      LocalTangentPlane plane = plane_of(geography_, inputs.set, inputs.mask);
      Prediction guess = guess_of(inputs, plane);
      at::Tensor truth =
          on_plane(geography_, plane, inputs.target) / spread_km_;
      at::Tensor rows = inputs.weight.sum().clamp_min(1);
      at::Tensor loss = (losses(guess, truth) * inputs.weight).sum() / rows;
      loss.backward();
      optimizer_.step(learning_rate(schedule_, number));
      PENSTOCK_ASSERT(loss.scalar_type() == at::kFloat, "a loss is a float32");
      losses_.add(static_cast<const std::byte*>(loss.const_data_ptr()), stream);
    });
  }

  std::vector<double> losses(bool wait) override {
    return in_torch("waiting for a step of the model",
                    [&] { return losses_.take(wait); });
  }

  void validate(const Batch& batch, Stream& stream) override {
    turn("validating the model", stream, [&] {
      at::NoGradGuard no_graph;
      Inputs inputs = inputs_of(batch);
      LocalTangentPlane plane = plane_of(geography_, inputs.set, inputs.mask);
      Prediction guess = guess_of(inputs, plane);
      at::Tensor truth =
          on_plane(geography_, plane, inputs.target) / spread_km_;
      at::Tensor km = distance_km(geography_, plane, guess.place * spread_km_,
                                  inputs.target);
      at::Tensor deviations = km / (guess.log_sigma.exp() * spread_km_);
      validation_.add(losses(guess, truth), km, deviations, inputs.weight);
    });
  }

  Json validated() override {
    return turn_now("waiting for the validation of the model",
                    [&] { return validation_.take(); });
  }

  ModelState save() override {
    return turn_now("saving the model", [&] {
      ModelState state = state_of(all_tensors());
      state.json = description();
      return state;
    });
  }

  void restore(const ModelState& state) override {
    turn_now("restoring the model", [&] {
      check_description(state.json);
      copy_state(state, all_tensors());
    });
  }

 private:
  template <class Work>
  void turn(const char* doing, Stream& stream, Work work) {
    in_torch(doing, [&] { turns_.on(stream, work); });
  }
  template <class Work>
  auto turn_now(const char* doing, Work work) -> decltype(work()) {
    return in_torch(doing, [&] { return turns_.now(work); });
  }

  Inputs inputs_of(const Batch& batch) const {
    std::span<const NamedTensor> tensors = batch.tensors();
    auto named = [&](const std::string& name) {
      auto found = std::ranges::find(tensors, name, &NamedTensor::name);
      PENSTOCK_ASSERT(found != tensors.end(), "a batch has its fields");
      return borrowed(found->view);
    };
    Inputs inputs{.set = named(settings_.set),
                  .mask = named(settings_.set + "_mask"),
                  .target = named(settings_.target)};
    // Where batches are padded, one more tensor marks the padding.
    inputs.weight = tensors.size() > tensors_ ? borrowed(tensors.back().view)
                                              : at::ones({inputs.mask.size(0)},
                                                         inputs.mask.options());
    return inputs;
  }

  Prediction guess_of(const Inputs& inputs,
                      const LocalTangentPlane& plane) const {
    at::Tensor elements =
        at::cat({inputs.set, plane.receivers / spread_km_}, 2);
    at::Tensor answers = network_(elements, inputs.mask);
    return {
        .place = answers.slice(1, 0, 2),
        .log_sigma = answers.select(1, 2).clamp(-kMostLogSigma, kMostLogSigma)};
  }

  /// The negative log-likelihood of each row's true place: the prediction is
  /// the mean of a round normal distribution.
  static at::Tensor losses(const Prediction& guess, const at::Tensor& truth) {
    at::Tensor squares = (guess.place - truth).square().sum(1);
    return squares * (guess.log_sigma * -2).exp() / 2 + guess.log_sigma * 2 +
           std::log(2 * std::numbers::pi);
  }

  std::vector<Parameter> all_tensors() const {
    std::vector<Parameter> all;
    append(all, "model.", network_.parameters());
    append(all, "adamw.", optimizer_.state());
    return all;
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
    json["threads"] = threads_;
    return json;
  }

  void check_description(const Json& found) const;

  const SetPosition settings_;
  const int threads_;
  const std::int64_t keys_;
  const std::size_t tensors_;  // of a batch without padding
  const Schedule schedule_;
  const Geography geography_;
  const double spread_km_;
  const Augment augment_;
  SerialStream turns_;
  Staging staging_;
  PendingLosses losses_;
  SetNetwork network_;
  AdamW optimizer_;
  Validation validation_;
};

// Threads may differ: then the last bits do, too.
void SetPositionStepper::check_description(const Json& found) const {
  const Json ours = description();
  for (const auto& [key, expected] : ours.object()) {
    const Json* value = found.is_object() ? found.find(key) : nullptr;
    if (value != nullptr && *value == expected) continue;
    std::string why = "found " +
                      (value == nullptr ? "nothing" : value->dump()) +
                      ", expected " + expected.dump();
    if (key == "threads") {
      log(LogLevel::warning,
          "the checkpoint was written with another number of threads (" + why +
              "): the run continues, but not bit for bit");
      continue;
    }
    throw Error(
        ErrorKind::request,
        {.code = "resume.other_model",
         .what = "cannot continue from the checkpoint",
         .where = "model." + key,
         .why = std::move(why),
         .next = "resume with the job that wrote it, or start a new run"});
  }
}

}  // namespace

std::unique_ptr<Stepper> make_set_position_stepper(const ModelSpec& spec,
                                                   const TableDataset& data,
                                                   Device& device,
                                                   std::int64_t steps) {
  return std::make_unique<SetPositionStepper>(spec, data, device,
                                              torch_device(device), steps);
}

}  // namespace penstock
