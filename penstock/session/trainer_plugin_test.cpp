#include "penstock/session/trainer_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/device/fake/named_gpu.h"

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

ModelSpec a_model() {
  Json document = Json::parse(kModel, "test");
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

TEST(Model, OnTheSimulatedDeviceIsRefused) {
  Error error =
      error_of([] { check_model_device(a_model(), MemoryKind::sim); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "model.on_sim");
  EXPECT_NO_THROW(check_model_device({}, MemoryKind::sim));
  EXPECT_NO_THROW(check_model_device(a_model(), MemoryKind::cpu));
  EXPECT_NO_THROW(check_model_device(a_model(), MemoryKind::cuda));
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
  EXPECT_THAT(error.what(), HasSubstr("0.0.9 (build old)"));
}

TEST(Model, ATorchWithoutDistributedIsNamed) {
  const Error error = error_of([] { load_trainer({kTestParts / "c10d"}); });
  EXPECT_EQ(error.parts().code, "trainer.torch");
  EXPECT_THAT(error.parts().why, HasSubstr("without torch.distributed"));
  EXPECT_THAT(error.parts().where, HasSubstr("libpenstock_trainer_2.11.so"));
}

TEST(Model, WithoutACurrentFolderTheTrainerIsNotLoaded) {
  const std::filesystem::path start = std::filesystem::current_path();
  const auto gone = std::filesystem::temp_directory_path() /
                    ("penstock_gone_" + std::to_string(::getpid()));
  std::filesystem::create_directory(gone);
  std::filesystem::current_path(gone);
  std::filesystem::remove(gone);
  Error error = error_of([] { load_trainer({kTestParts / "good"}); });
  std::filesystem::current_path(start);
  EXPECT_EQ(error.parts().code, "file.current_folder");
}

/// The name of the device that is trained on, and what is logged.
std::pair<std::string, std::vector<std::string>> trained_on(
    std::unique_ptr<Device> opened, const char* wanted,
    const TrainerPlugin& trainer) {
  std::vector<std::string> lines;
  set_log_writer([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(line);
  });
  auto device = training_device(std::move(opened), {.kind = wanted},
                                trainer.cuda_unavailable_reason);
  set_log_writer({});
  return {device->name(), lines};
}

TEST(Model, IsTrainedOnTheCpuWhereAutoFoundAGpuThatTheTrainerCannotUse) {
  const TrainerPlugin& trainer = load_trainer({kTestParts / "good"});
  auto [name, logged] =
      trained_on(std::make_unique<NamedGpu>("cuda:0 Test"), "auto", trainer);
  EXPECT_EQ(name, "cpu");
  EXPECT_THAT(logged, testing::ElementsAre(testing::AllOf(
                          HasSubstr("cuda:0 Test"), HasSubstr("has no CUDA"))));
}

TEST(Model, IsTrainedOnTheDeviceThatWasAskedFor) {
  TrainerPlugin trainer = load_trainer({kTestParts / "good"});
  using testing::IsEmpty;
  using testing::Pair;
  EXPECT_THAT(
      trained_on(std::make_unique<NamedGpu>("cuda:0 Test"), "cuda", trainer),
      Pair("cuda:0 Test", IsEmpty()));
  EXPECT_THAT(trained_on(open_device({.kind = "cpu"}), "auto", trainer),
              Pair("cpu", IsEmpty()));
  trainer.cuda_unavailable_reason = [] { return std::string(); };
  EXPECT_THAT(
      trained_on(std::make_unique<NamedGpu>("cuda:0 Test"), "auto", trainer),
      Pair("cuda:0 Test", IsEmpty()));
}

TEST(Model, IsMadeByTheTrainerThatIsFound) {
  PositionsRun positions(60);
  std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
  auto data = TableDataset::prepare(
      dataset_options(positions.job({"device=cpu"}), MemoryKind::cpu), *cpu);
  ::setenv("PENSTOCK_PARTS", (kTestParts / "good").c_str(), 1);
  Error error =
      error_of([&] { open_model(a_model(), *data->facts().fitted, *cpu, 10); });
  ::unsetenv("PENSTOCK_PARTS");
  EXPECT_EQ(error.parts().code, "test.thrown");
  EXPECT_EQ(error.parts().where, "set_position");
  std::unique_ptr<Device> sim = open_device({.kind = "sim"});
  error =
      error_of([&] { open_model(a_model(), *data->facts().fitted, *sim, 10); });
  EXPECT_EQ(error.parts().code, "model.on_sim");
}

}  // namespace
}  // namespace penstock
