#include "penstock/device/device.h"

#include <gtest/gtest-spi.h>

#include "tests/conformance/device_suite.h"
#include "tests/conformance/operation_suite.h"

namespace penstock::conformance {
namespace {

DeviceCase sim_case(const std::string& name, bool virtual_time) {
  DeviceSpec spec{.kind = "sim",
                  .step_ms = 0.1,
                  .memory_gib = 1.0 / 16,
                  .virtual_time = virtual_time};
  return {name, [spec] { return open_device(spec); }, true};
}

const auto kCases =
    testing::Values(DeviceCase{"cpu", [] { return open_device({"cpu"}); }},
                    sim_case("sim_virtual", true), sim_case("sim_wall", false));
INSTANTIATE_TEST_SUITE_P(Devices, DeviceSuite, kCases, device_case_name);
INSTANTIATE_TEST_SUITE_P(Devices, OperationSuite, kCases, device_case_name);

TEST(OpenDevice, NamesWhatItOpened) {
  EXPECT_EQ(open_device({.kind = "cpu"})->name(), "cpu");
  EXPECT_EQ(open_device({.kind = "sim"})->name(), "sim");
}

TEST(OpenDevice, AutoNeverPicksSim) {
  std::unique_ptr<Device> device = open_device({.kind = "auto", .step_ms = 75});
  EXPECT_NE(device->memory_kind(), MemoryKind::sim);
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

TEST(OpenDevice, WithoutStreamsOfOthersRefusesToBorrowOne) {
  int somebodys = 0;
  for (std::string kind : {"cpu", "sim"}) {
    std::unique_ptr<Device> device = open_device({.kind = kind});
    try {
      device->borrow_stream(&somebodys);
      FAIL() << kind;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "device.foreign_stream");
      EXPECT_THAT(error.what(), testing::HasSubstr(kind));
    }
  }
}

TEST(OpenDevice, OnlyHardwareHasAPlaceOnTheBus) {
  for (std::string kind : {"cpu", "sim"}) {
    std::unique_ptr<Device> device = open_device({.kind = kind});
    EXPECT_EQ(device->number(), 0);
    EXPECT_EQ(device->pci_bus_id(), "");
    EXPECT_EQ(device->make_stream()->handle(), nullptr);
  }
}

TEST(DeviceSuiteItself, FailsWithoutAGpuWhereOneIsRequired) {
  const char* before = std::getenv("PENSTOCK_REQUIRE_GPU");
  std::string kept = before == nullptr ? "" : before;
  ::setenv("PENSTOCK_REQUIRE_GPU", "1", 1);
  EXPECT_FATAL_FAILURE(no_device("there is no driver"),
                       "PENSTOCK_REQUIRE_GPU=1, but there is no driver");
  if (before == nullptr)
    ::unsetenv("PENSTOCK_REQUIRE_GPU");
  else
    ::setenv("PENSTOCK_REQUIRE_GPU", kept.c_str(), 1);
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
