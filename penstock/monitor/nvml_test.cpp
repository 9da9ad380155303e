#include "penstock/monitor/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/device/fake/named_gpu.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A library with one GPU, whose every function fails when told to.
struct FakeNvml {
  int init = 0, find = 0, temperature_1 = 0, temperature = 0, power = 0,
      utilisation = 0, memory_2 = 0, memory = 0;
  int started = 0;
  unsigned temperature_version = 0, memory_version = 0;
};
FakeNvml fake;

NvmlCalls::Device the_gpu() {
  return reinterpret_cast<NvmlCalls::Device>(&fake);
}

NvmlCalls calls() {
  using Calls = NvmlCalls;
  Calls calls;
  calls.init = [] {
    if (fake.init == 0) ++fake.started;
    return fake.init;
  };
  calls.shutdown = [] {
    --fake.started;
    return 0;
  };
  calls.find = [](const char* bus, Calls::Device* gpu) {
    if (fake.find != 0) return fake.find;
    if (std::string(bus) != "0000:41:00.0") return 6;  // not found
    *gpu = the_gpu();
    return 0;
  };
  calls.temperature_1 = [](Calls::Device, Calls::Temperature1* now) {
    fake.temperature_version = now->version;
    now->celsius = fake.temperature_1 == 0 ? 61 : -1;
    return fake.temperature_1;
  };
  calls.temperature = [](Calls::Device, int, unsigned* celsius) {
    *celsius = 60;
    return fake.temperature;
  };
  calls.power = [](Calls::Device gpu, unsigned* milliwatts) {
    EXPECT_EQ(gpu, the_gpu());
    *milliwatts = 350'500;
    return fake.power;
  };
  calls.utilisation = [](Calls::Device, Calls::Utilisation* percent) {
    *percent = {37, 12};
    return fake.utilisation;
  };
  calls.memory_2 = [](Calls::Device, Calls::Memory2* now) {
    fake.memory_version = now->version;
    now->total = 1000;
    now->reserved = 50;
    now->used = 200;
    return fake.memory_2;
  };
  calls.memory = [](Calls::Device, Calls::Memory* now) {
    *now = {1000, 750, 250};
    return fake.memory;
  };
  return calls;
}

class Nvml : public testing::Test {
 protected:
  void SetUp() override {
    fake = FakeNvml();
    set_log_writer([this](LogLevel, std::string_view line) {
      logged_.emplace_back(line);
    });
  }
  void TearDown() override {
    set_log_writer({});
    EXPECT_EQ(fake.started, 0) << "what was started was not shut down";
  }
  GpuUse use(const NvmlCalls& library = calls(),
             const std::string& bus = "0000:41:00.0") {
    GpuSensor sensor(bus, library);
    sensor.read();
    return sensor.read();
  }
  static void expect_nothing(const GpuUse& use) {
    EXPECT_FALSE(use.temperature_c);
    EXPECT_FALSE(use.power_w);
    EXPECT_FALSE(use.utilisation);
    EXPECT_FALSE(use.memory_used);
    EXPECT_FALSE(use.memory_total);
  }
  std::vector<std::string> logged_;
};

TEST_F(Nvml, TellsEveryNumberInOurUnits) {
  GpuUse now = use();
  EXPECT_EQ(now.temperature_c, 61);
  EXPECT_EQ(now.power_w, 350.5);
  EXPECT_EQ(now.utilisation, 0.37);
  EXPECT_EQ(now.memory_used, 200u);
  EXPECT_EQ(now.memory_total, 1000u);
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(Nvml, StructsCarryTheirSizeAndVersion) {
  use();
  EXPECT_EQ(fake.temperature_version, 12u | 1u << 24);
  EXPECT_EQ(fake.memory_version, 40u | 2u << 24);
}

TEST_F(Nvml, WhatAGpuDoesNotTellIsMissingAndTheRestIsThere) {
  // Not supported, no permission, no such function, no data, no such GPU.
  for (int code : {3, 4, 13, 21, 28, 999}) {
    fake = FakeNvml();
    fake.utilisation = code;
    GpuUse now = use();
    EXPECT_FALSE(now.utilisation) << code;
    EXPECT_EQ(now.power_w, 350.5);
    fake = FakeNvml();
    fake.power = code;
    now = use();
    EXPECT_FALSE(now.power_w) << code;
    EXPECT_EQ(now.utilisation, 0.37);
    fake = FakeNvml();
    fake.temperature_1 = fake.temperature = code;
    now = use();
    EXPECT_FALSE(now.temperature_c) << code;
    EXPECT_EQ(now.memory_used, 200u);
    fake = FakeNvml();
    fake.memory_2 = fake.memory = code;
    now = use();
    EXPECT_FALSE(now.memory_used) << code;
    EXPECT_FALSE(now.memory_total) << code;
    EXPECT_EQ(now.temperature_c, 61);
  }
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(Nvml, AnOlderLibraryIsAskedByItsOwnFunctions) {
  NvmlCalls old = calls();
  old.temperature_1 = nullptr;
  old.memory_2 = nullptr;
  GpuUse now = use(old);
  EXPECT_EQ(now.temperature_c, 60);
  EXPECT_EQ(now.memory_used, 250u);
  EXPECT_EQ(now.memory_total, 1000u);
}

TEST_F(Nvml, AnOlderDriverUnderANewLibraryToo) {
  fake.temperature_1 = 13;
  fake.memory_2 = 25;  // this version of the struct is not known
  GpuUse now = use();
  EXPECT_EQ(now.temperature_c, 60);
  EXPECT_EQ(now.memory_used, 250u);
}

TEST_F(Nvml, ALibraryWithoutAFunctionLacksItsNumberAlone) {
  NvmlCalls few = calls();
  few.power = nullptr;
  few.utilisation = nullptr;
  few.temperature = nullptr;
  few.temperature_1 = nullptr;
  few.memory = nullptr;
  few.memory_2 = nullptr;
  expect_nothing(use(few));
  few.power = calls().power;
  EXPECT_EQ(use(few).power_w, 350.5);
}

TEST_F(Nvml, WithoutTheLibraryNothingIsKnown) {
  expect_nothing(use(NvmlCalls{}));
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(Nvml, WithoutTheFunctionsThatFindAGpuNothingIsStarted) {
  for (int missing = 0; missing < 3; ++missing) {
    NvmlCalls few = calls();
    if (missing == 0) few.init = nullptr;
    if (missing == 1) few.shutdown = nullptr;
    if (missing == 2) few.find = nullptr;
    expect_nothing(use(few));
  }
}

TEST_F(Nvml, ALibraryThatDoesNotStartKnowsNothing) {
  fake.init = 9;  // the driver is not loaded
  expect_nothing(use());
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(Nvml, AGpuThatIsNotFoundHasNoNumbers) {
  expect_nothing(use(calls(), "0000:99:00.0"));
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(Nvml, ALostGpuIsToldOnceAndItsNumbersAreMissing) {
  fake.temperature_1 = fake.temperature = fake.power = fake.utilisation =
      fake.memory_2 = fake.memory = 15;
  expect_nothing(use());
  EXPECT_THAT(logged_, ElementsAre(AllOf(HasSubstr("0000:41:00.0"),
                                         HasSubstr("the GPU is lost"))));
}

TEST_F(Nvml, TroubleOfTheMachineIsTold) {
  std::vector<std::pair<int, std::string>> troubles = {
      {15, "is lost"}, {16, "reset"}, {17, "denies access"}, {18, "versions"}};
  for (const auto& [code, words] : troubles) {
    logged_.clear();
    fake = FakeNvml();
    fake.init = code;
    expect_nothing(use());
    EXPECT_THAT(logged_, ElementsAre(HasSubstr(words)));
  }
}

TEST(GpuSensorOfADevice, IsThereWhereTheDeviceIsAGpu) {
  const NamedGpu gpu("cuda:0", kNoBus);
  EXPECT_NE(gpu_sensor(gpu), nullptr);
  std::optional<GpuUse> use = read_gpu_use(gpu);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->text(), "GPU n/a n/a n/a");
}

TEST(GpuSensorOfADevice, IsNoneWhereTheDeviceIsNoGpu) {
  for (const char* kind : {"cpu", "sim"}) {
    std::unique_ptr<Device> device = open_device({.kind = kind});
    EXPECT_EQ(gpu_sensor(*device), nullptr) << kind;
    EXPECT_FALSE(read_gpu_use(*device)) << kind;
  }
}

TEST(GpuUse, IsShownRoundedWithItsUnits) {
  EXPECT_EQ(GpuUse({.temperature_c = 64, .power_w = 511.6, .utilisation = 0.97})
                .text(),
            "GPU 97 % 64 C 512 W");
}

TEST(GpuUse, ShowsEachMissingNumberInItsPlace) {
  EXPECT_EQ(GpuUse({.temperature_c = 64, .power_w = 80}).text(),
            "GPU n/a 64 C 80 W");
  EXPECT_EQ(GpuUse({.power_w = 80, .utilisation = 0}).text(),
            "GPU 0 % n/a 80 W");
  EXPECT_EQ(GpuUse({.temperature_c = 64, .utilisation = 1}).text(),
            "GPU 100 % 64 C n/a");
}

TEST(GpuUse, InAReportNamesEveryNumber) {
  EXPECT_EQ(GpuUse({.temperature_c = 64,
                    .power_w = 511.5,
                    .utilisation = 0.25,
                    .memory_used = 200,
                    .memory_total = 1000})
                .json()
                .dump(),
            R"({"temperature_c": 64.0, "power_w": 511.5, "utilisation": 0.25, )"
            R"("memory_used_bytes": 200, "memory_total_bytes": 1000})");
}

TEST(GpuUse, InAReportHasNullForWhatIsMissing) {
  EXPECT_EQ(GpuUse().json().dump(),
            R"({"temperature_c": null, "power_w": null, "utilisation": null, )"
            R"("memory_used_bytes": null, "memory_total_bytes": null})");
}

TEST(NvmlOfThisMachine, IsOpenedOnceAndIsWholeOrAbsent) {
  const NvmlCalls& calls = nvml_of_this_machine();
  EXPECT_EQ(&calls, &nvml_of_this_machine());
  EXPECT_EQ(calls.init == nullptr, calls.shutdown == nullptr);
  EXPECT_EQ(calls.init == nullptr, calls.find == nullptr);
}

}  // namespace
}  // namespace penstock
