#include "penstock/device/device.h"

#include "tests/conformance/device_suite.h"

namespace penstock::conformance {
namespace {

DeviceCase sim_case(const std::string& name, bool virtual_time) {
  DeviceSpec spec{.kind = "sim",
                  .step_ms = 0.1,
                  .memory_gib = 1.0 / 16,
                  .virtual_time = virtual_time};
  return {name, [spec] { return open_device(spec); }, true};
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DeviceSuite,
    testing::Values(DeviceCase{"cpu", [] { return open_device({"cpu"}); }},
                    sim_case("sim_virtual", true), sim_case("sim_wall", false)),
    device_case_name);

TEST(OpenDevice, NamesWhatItOpened) {
  EXPECT_EQ(open_device({.kind = "cpu"})->name(), "cpu");
  EXPECT_EQ(open_device({.kind = "sim"})->name(), "sim");
}

TEST(OpenDevice, AutoNeverPicksSim) {
  EXPECT_EQ(open_device({.kind = "auto", .step_ms = 75})->name(), "cpu");
}

TEST(OpenDevice, EachDeviceHasItsMemoryKindAndClock) {
  std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
  EXPECT_EQ(cpu->memory_kind(), MemoryKind::cpu);
  EXPECT_EQ(&cpu->clock(), &wall_clock());
  std::unique_ptr<Device> sim = open_device({.kind = "sim"});
  EXPECT_EQ(sim->memory_kind(), MemoryKind::sim);
  EXPECT_EQ(&sim->clock(), &wall_clock());
  std::unique_ptr<Device> test =
      open_device({.kind = "sim", .virtual_time = true});
  EXPECT_NE(dynamic_cast<VirtualClock*>(&test->clock()), nullptr);
}

TEST(OpenDevice, SaysThatThisBuildHasNoCuda) {
  try {
    open_device({.kind = "cuda"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.parts().code, "device.not_built");
    EXPECT_THAT(error.what(), testing::HasSubstr("no CUDA device"));
  }
}

TEST(OpenDevice, RefusesAKindThatDoesNotExist) {
  try {
    open_device({.kind = "tpu"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_THAT(error.what(), testing::HasSubstr("tpu"));
  }
}

}  // namespace
}  // namespace penstock::conformance
