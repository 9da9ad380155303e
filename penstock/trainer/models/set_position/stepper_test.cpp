#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "penstock/device/fake/named_gpu.h"
#include "penstock/trainer/cuda_library.h"
#include "penstock/trainer/fake/positions_model.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSteps = PositionsModel::kSteps;

/// The demo's rows, prepared once for all tests of this file.
class StepperTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    positions_ = std::make_unique<PositionsModel>("cpu");
    device_ = &positions_->device();
    data_ = positions_->data();
  }
  static void TearDownTestSuite() {
    data_.reset();
    positions_.reset();
  }

  static Job job() { return positions_->job(); }
  static std::shared_ptr<const TableDataset> prepare(
      const std::vector<std::string>& sets) {
    return positions_->prepare(sets);
  }
  static ModelSpec spec() { return PositionsModel::spec(); }
  static std::unique_ptr<Stepper> stepper(const ModelSpec& spec) {
    return positions_->stepper(spec);
  }
  static std::vector<double> take(
      Stepper& stepper, std::int64_t begin, std::int64_t end,
      std::shared_ptr<const TableDataset> data = data_,
      Tail tail = Tail::drop) {
    return positions_->take(stepper, begin, end, data, tail);
  }
  static Json validate(Stepper& stepper, Tail tail = Tail::exact) {
    return positions_->validate(stepper, tail);
  }

  static std::string refusal(const ModelSpec& spec, Device& device) {
    try {
      make_stepper(spec, *data_->facts().fitted, device, kSteps);
    } catch (const Error& error) {
      return std::string(name_of(error.kind())) + ": " + error.what();
    }
    return "nothing was thrown";
  }

  static inline std::unique_ptr<PositionsModel> positions_;
  static inline Device* device_;
  static inline std::shared_ptr<const TableDataset> data_;
};

double number(const Json& json, const char* key) {
  return json.find(key)->number();
}

TEST_F(StepperTest, Learns) {
  auto model = stepper(spec());
  EXPECT_TRUE(model->facts().has_model);
  EXPECT_TRUE(model->facts().takes_time);
  EXPECT_THAT(model->losses(true), testing::IsEmpty());
  double before = number(validate(*model), "val_loss");
  std::vector<double> losses = take(*model, 0, kSteps);
  Json after = validate(*model);
  EXPECT_LT(losses.back(), losses.front() - 1);
  EXPECT_LT(number(after, "val_loss"), before - 1);
  EXPECT_GT(number(after, "val_median_km"), 1);
  EXPECT_LT(number(after, "val_median_km"), 30);
}

TEST_F(StepperTest, LearnsInEveryPrecisionAndHasNoClassesToSmooth) {
  for (Dtype precision : {Dtype::bfloat16, Dtype::float16}) {
    ModelSpec wanted = spec();
    wanted.learning.precision = precision;
    auto model = stepper(wanted);
    std::vector<double> losses = take(*model, 0, kSteps);
    EXPECT_LT(losses.back(), losses.front() - 1);
    EXPECT_THAT(
        model->facts().in_force,
        testing::ElementsAre(testing::Field(&SwitchInForce::name, "precision"),
                             testing::Field(&SwitchInForce::name, "tf32"),
                             testing::Field(&SwitchInForce::name, "graphs"),
                             testing::Field(&SwitchInForce::name, "accumulate"),
                             testing::Field(&SwitchInForce::name, "ema")));
  }
}

TEST_F(StepperTest, BeforeItLearnsItGuessesTheCentroid) {
  Json json = validate(*stepper(spec()));
  // A standard deviation of one spread in each direction, at the centroid.
  EXPECT_GT(number(json, "val_loss"), std::log(2 * M_PI));
  EXPECT_EQ(number(json, "val_within_90"), 1);
}

TEST_F(StepperTest, GoesOnFromASavedStateBitForBit) {
  for (int threads : {1, 2}) {
    ModelSpec wanted = spec();
    wanted.learning.threads = threads;
    auto whole = stepper(wanted);
    std::vector<double> losses = take(*whole, 0, kSteps);

    auto first = stepper(wanted);
    take(*first, 0, 17);
    ModelState saved = first->save();
    first.reset();
    auto second = stepper(wanted);
    take(*second, 0, 3);  // all that this leaves is replaced
    second->restore(saved);
    std::vector<double> rest = take(*second, 17, kSteps);

    EXPECT_EQ(rest, std::vector(losses.begin() + 17, losses.end()));
    expect_same_bits(whole->save(), second->save());
    EXPECT_EQ(validate(*whole).dump(), validate(*second).dump());
  }
}

TEST_F(StepperTest, IsFixedByItsSeed) {
  ModelSpec other = spec();
  PositionsModel::settings_of(other).seed = 1;
  auto one = stepper(spec()), same = stepper(spec()), another = stepper(other);
  std::vector<double> losses = take(*one, 0, 5);
  EXPECT_EQ(take(*same, 0, 5), losses);
  EXPECT_NE(take(*another, 0, 5), losses);
}

TEST_F(StepperTest, ValidationLeavesNoTraceInTheModel) {
  auto quiet = stepper(spec()), looked_at = stepper(spec());
  take(*quiet, 0, 10);
  take(*looked_at, 0, 5);
  validate(*looked_at);
  take(*looked_at, 5, 10);
  expect_same_bits(quiet->save(), looked_at->save());
}

TEST_F(StepperTest, PaddingCountsForNothing) {
  auto exact = stepper(spec()), padded = stepper(spec());
  Json one = validate(*exact, Tail::exact);
  Json other = validate(*padded, Tail::pad);
  EXPECT_NEAR(number(one, "val_loss"), number(other, "val_loss"), 1e-6);
  EXPECT_EQ(number(one, "val_median_km"), number(other, "val_median_km"));
  // An epoch with its last, short batch.
  LoaderOptions options = loader_options(job(), Side::train);
  std::int64_t steps = steps_per_epoch(order_of(options, *data_)) + 1;
  std::vector<double> losses = take(*exact, 0, steps, data_, Tail::exact);
  std::vector<double> same = take(*padded, 0, steps, data_, Tail::pad);
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], same[i], 2e-4) << i;
}

TEST_F(StepperTest, TheTargetNeedNotBeStandardised) {
  std::shared_ptr<const TableDataset> plain = prepare(
      {"fields.target.standardize=false", "fields.target.dtype=float64"});
  auto one = stepper(spec());
  auto other = make_stepper(spec(), *plain->facts().fitted, *device_, kSteps);
  std::vector<double> losses = take(*one, 0, 3);
  std::vector<double> same = take(*other, 0, 3, plain);
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], same[i], 1e-4) << i;
}

TEST_F(StepperTest, SavesWeightsAndBothMomentsByName) {
  ModelState state = stepper(spec())->save();
  std::vector<std::string> names;
  for (const NamedTensor& tensor : state.tensors) names.push_back(tensor.name);
  EXPECT_EQ(names.size(), 28u * 3 + 1);
  EXPECT_THAT(names,
              testing::IsSupersetOf({"model.answer.weight", "adamw.steps",
                                     "adamw.first_moment.answer.weight",
                                     "adamw.second_moment.answer.weight"}));
  EXPECT_EQ(state.json.find("kind")->string(), "set_position");
}

TEST_F(StepperTest, RefusesTheStateOfAnotherModel) {
  ModelSpec wide = spec();
  PositionsModel::settings_of(wide).width = 24;
  ModelState state = stepper(wide)->save();
  auto model = stepper(spec());
  try {
    model->restore(state);
    FAIL() << "it was restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "resume.other_model");
    EXPECT_THAT(error.what(), HasSubstr("model.width: found 24, expected 16"));
  }
  state.json = {};
  EXPECT_THROW(model->restore(state), Error);
}

TEST_F(StepperTest, WarnsWhenTheThreadsOfTheStateWereOthers) {
  ModelState state = stepper(spec())->save();
  ModelSpec other = spec();
  other.learning.threads = 2;
  auto model = stepper(other);
  std::string logged;
  set_log_writer([&](LogLevel, std::string_view line) { logged = line; });
  model->restore(state);
  set_log_writer({});
  EXPECT_THAT(logged, HasSubstr("not bit for bit"));
}

TEST_F(StepperTest, NamesTheFieldOrKeyThatItCannotUse) {
  ModelSpec wrong = spec();
  PositionsModel::settings_of(wrong).set = "receiver";
  EXPECT_THAT(refusal(wrong, *device_),
              HasSubstr("request: cannot make the model at model: there is no "
                        "field 'receiver'"));
  wrong = spec();
  PositionsModel::settings_of(wrong).latitude = "latitude";
  EXPECT_THAT(refusal(wrong, *device_), HasSubstr("key 'latitude'"));
  wrong = spec();
  PositionsModel::settings_of(wrong).strength = "signal_present";
  EXPECT_THAT(refusal(wrong, *device_), HasSubstr("holds true and false"));
}

TEST_F(StepperTest, RefusesTheSimulatedDevice) {
  auto sim = open_device({.kind = "sim"});
  EXPECT_THAT(refusal(spec(), *sim), HasSubstr("request: cannot train on sim"));
}

TEST_F(StepperTest, OnCudaSaysWhatLibtorchLacks) {
  if (cuda_library().devices > 0) GTEST_SKIP() << "libtorch has CUDA here";
  NamedGpu cuda;
  EXPECT_THAT(refusal(spec(), cuda),
              HasSubstr("device: cannot train on cuda:0 at device: " +
                        cuda_library().why));
  EXPECT_FALSE(cuda_library().why.empty());
}

TEST_F(StepperTest, DescribesItself) {
  stepper(spec());
  EXPECT_THAT(build_info(), testing::MatchesRegex(
                                "libtorch 2\\.[0-9.]+, 1 thread, .*CUDA.*"));
}

}  // namespace
}  // namespace penstock
