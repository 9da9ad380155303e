#include "penstock/run/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

using testing::HasSubstr;

// The parts under part_test/ are built for these tests alone.
const std::filesystem::path kTestParts = PENSTOCK_TEST_PARTS;

const char* const kModel = R"({
  "kind": "set_position", "set": "receivers", "target": "target",
  "latitude": "lat", "longitude": "lon", "strength": "snr_db"
})";

const char* const kFields = R"({
  "receivers": {"json_set": {"column": "receivers", "max": 8,
    "keys": ["snr_db", "lat", "lon"]}, "standardize": true},
  "target": {"columns": ["tx_lat", "tx_lon"], "standardize": true},
  "empty": {"json_set": {"column": "r", "max": 8, "min": 0,
    "keys": ["snr_db", "lat", "lon"]}},
  "three": {"columns": ["a", "b", "c"]},
  "whole": {"columns": ["a", "b"], "dtype": "int64"}
})";

ModelSpec model_with(const std::vector<std::string>& sets) {
  Json document = Json::parse(kModel, "test");
  for (const std::string& set : sets) apply_setting(document, set);
  return parse_model(&document,
                     parse_fields(Json::parse(kFields, "test"), "fields"));
}

template <class Work>
Error error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "no error"});
}

std::string refusal(const std::vector<std::string>& sets) {
  Error error = error_of([&] { model_with(sets); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  return error.what();
}

TEST(Model, HasTheDefaultsOfTheSchema) {
  ModelSpec model = model_with({});
  EXPECT_FALSE(model.none());
  EXPECT_EQ(model.kind, "set_position");
  EXPECT_EQ(model.set, "receivers");
  EXPECT_EQ(model.latitude, "lat");
  EXPECT_EQ(model.width, 64);
  EXPECT_EQ(model.dropout, 0.1);
  EXPECT_EQ(model.noise_db, 3);
  EXPECT_EQ(model.seed, 0u);
}

TEST(Model, IsNoneWhenMissingOrNone) {
  Json none("none"), other("some");
  EXPECT_TRUE(parse_model(nullptr, {}).none());
  EXPECT_TRUE(parse_model(&none, {}).none());
  EXPECT_THAT(error_of([&] { parse_model(&other, {}); }).what(),
              HasSubstr("found \"some\", expected \"none\" or an object"));
}

TEST(Model, NamesTheNearestFieldAndKey) {
  EXPECT_THAT(refusal({"set=receiver"}),
              HasSubstr("model.set: there is no field 'receiver'; did you mean "
                        "'receivers'?"));
  EXPECT_THAT(refusal({"strength=snr"}),
              HasSubstr("model.strength: the set has no key 'snr'"));
  EXPECT_THAT(refusal({"widht=8"}), HasSubstr("did you mean 'width'?"));
}

TEST(Model, NeedsItsKindAndItsInputs) {
  for (const char* key :
       {"kind", "set", "target", "latitude", "longitude", "strength"})
    EXPECT_THAT(refusal({std::string(key) + "=null"}),
                HasSubstr(std::string("model.") + key + ": it is missing"));
  EXPECT_THAT(refusal({"kind=transformer"}), HasSubstr("set_position"));
}

TEST(Model, RefusesFieldsThatDoNotFit) {
  EXPECT_THAT(refusal({"set=target"}), HasSubstr("is no json_set"));
  EXPECT_THAT(refusal({"set=empty"}), HasSubstr("its \"min\" is 0"));
  EXPECT_THAT(refusal({"target=receivers"}), HasSubstr("two columns"));
  EXPECT_THAT(refusal({"target=three"}), HasSubstr("two columns"));
  EXPECT_THAT(refusal({"target=whole"}), HasSubstr("whole numbers"));
}

TEST(Model, ChecksRanges) {
  EXPECT_THAT(refusal({"width=4"}), HasSubstr("model.width: found 4"));
  EXPECT_THAT(refusal({"width=20"}), HasSubstr("a multiple of 8"));
  EXPECT_THAT(refusal({"dropout=1"}), HasSubstr("model.dropout"));
  EXPECT_THAT(refusal({"noise_db=-1"}), HasSubstr("model.noise_db"));
  EXPECT_THAT(refusal({"seed=-1"}), HasSubstr("model.seed"));
}

TEST(Model, TakesItsPartOfTheTrainSection) {
  Json train = Json::parse(R"({"lr": 0.5, "warmup_steps": 7, "clip_norm": 0,
                               "weight_decay": 0.25, "threads": 3})",
                           "test");
  Spec spec(train, "train");
  ModelSpec model;
  add_training(spec, model);
  spec.finish();
  EXPECT_EQ(model.lr, 0.5);
  EXPECT_EQ(model.warmup_steps, 7);
  EXPECT_EQ(model.weight_decay, 0.25);
  EXPECT_EQ(model.clip_norm, 0);
  EXPECT_EQ(model.threads, 3);
}

TEST(Model, ShowsHowManyThreadsItGets) {
  ModelSpec model;
  model.kind = "set_position";
  Json settings;
  show_model(model, settings);
  auto processors = static_cast<std::int64_t>(read_host_limits().cpus);
  EXPECT_EQ(settings["train"]["threads"],
            Json(std::max<std::int64_t>(1, processors)));
  model.threads = 3;
  show_model(model, settings);
  EXPECT_EQ(settings["train"]["threads"], Json(3));
}

TEST(Model, ChecksItsPartOfTheTrainSection) {
  for (const char* key :
       {"lr", "warmup_steps", "weight_decay", "clip_norm", "threads"}) {
    Json train(Json::Object{{key, Json(-1)}});
    Spec spec(train, "train");
    ModelSpec model;
    EXPECT_THAT(error_of([&] { add_training(spec, model); }).what(),
                HasSubstr(std::string("train.") + key + ": found -1"));
  }
}

TEST(Model, ShowsEveryDefaultThatWasUsed) {
  Json settings;
  show_model(model_with({"width=32"}), settings);
  EXPECT_EQ(settings.find("model")->find("width")->integer(), 32);
  EXPECT_EQ(settings.find("model")->find("noise_db")->number(), 3);
  EXPECT_EQ(settings.find("train")->find("warmup_steps")->integer(), 50);
  Json none;
  show_model({}, none);
  EXPECT_EQ(none.find("model")->string(), "none");
  EXPECT_EQ(none.find("train"), nullptr);
}

TEST(Model, OnTheSimulatedDeviceIsRefused) {
  Error error =
      error_of([] { check_model_device(model_with({}), MemoryKind::sim); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "model.on_sim");
  EXPECT_NO_THROW(check_model_device({}, MemoryKind::sim));
  EXPECT_NO_THROW(check_model_device(model_with({}), MemoryKind::cpu));
  EXPECT_NO_THROW(check_model_device(model_with({}), MemoryKind::cuda));
}

TEST(Model, WithoutTheTrainerSaysWhatToDo) {
  Error error = error_of([] { load_trainer({"/nowhere"}); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "trainer.part_missing");
  EXPECT_THAT(error.what(), HasSubstr("tools/fetch_torch"));
}

TEST(Model, FindsTheTrainer) {
  EXPECT_EQ(load_trainer({"/nowhere", kTestParts / "good"}).build_info(),
            "a test part");
}

TEST(Model, RefusesATrainerOfAnotherVersion) {
  Error error = error_of([] { load_trainer({kTestParts / "old"}); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "trainer.part_version");
  EXPECT_THAT(error.what(), HasSubstr("has version 0"));
}

/// A GPU that has nothing but its name.
class NamedCuda final : public Device {
 public:
  NamedCuda() : Device(MemoryKind::cuda) {}
  std::string name() const override { return "cuda:0 Test"; }
  Buffer allocate(std::size_t) override { return {}; }
  Buffer allocate_pinned(std::size_t) override { return {}; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  DeviceMemory memory() const override { return {}; }
  Clock& clock() const override { return wall_clock(); }
};

/// The name of the device that is trained on, and what is logged.
std::pair<std::string, std::vector<std::string>> trained_on(
    std::unique_ptr<Device> opened, const char* wanted,
    const TrainerPlugin& trainer) {
  std::vector<std::string> lines;
  set_log_writer([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(line);
  });
  auto device = training_device(std::move(opened), {.kind = wanted}, trainer);
  set_log_writer({});
  return {device->name(), lines};
}

TEST(Model, IsTrainedOnTheCpuWhereAutoFoundAGpuThatTheTrainerCannotUse) {
  const TrainerPlugin& trainer = load_trainer({kTestParts / "good"});
  auto [name, logged] =
      trained_on(std::make_unique<NamedCuda>(), "auto", trainer);
  EXPECT_EQ(name, "cpu");
  EXPECT_THAT(logged, testing::ElementsAre(testing::AllOf(
                          HasSubstr("cuda:0 Test"), HasSubstr("has no CUDA"))));
}

TEST(Model, IsTrainedOnTheDeviceThatWasAskedFor) {
  TrainerPlugin trainer = load_trainer({kTestParts / "good"});
  using testing::IsEmpty;
  using testing::Pair;
  EXPECT_THAT(trained_on(std::make_unique<NamedCuda>(), "cuda", trainer),
              Pair("cuda:0 Test", IsEmpty()));
  EXPECT_THAT(trained_on(open_device({.kind = "cpu"}), "auto", trainer),
              Pair("cpu", IsEmpty()));
  trainer.cuda_unavailable_reason = [] { return std::string(); };
  EXPECT_THAT(trained_on(std::make_unique<NamedCuda>(), "auto", trainer),
              Pair("cuda:0 Test", IsEmpty()));
}

TEST(Model, IsMadeByTheTrainerThatIsFound) {
  PositionsRun positions(60);
  std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
  auto data = TableDataset::prepare(
      dataset_options(positions.job({"device=cpu"})), *cpu);
  ::setenv("PENSTOCK_PARTS", (kTestParts / "good").c_str(), 1);
  Error error = error_of([&] { open_model(model_with({}), *data, *cpu, 10); });
  ::unsetenv("PENSTOCK_PARTS");
  EXPECT_EQ(error.parts().code, "test.thrown");
  EXPECT_EQ(error.parts().where, "receivers");
  std::unique_ptr<Device> sim = open_device({.kind = "sim"});
  error = error_of([&] { open_model(model_with({}), *data, *sim, 10); });
  EXPECT_EQ(error.parts().code, "model.on_sim");
}

}  // namespace
}  // namespace penstock
