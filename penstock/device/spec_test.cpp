#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

using testing::HasSubstr;

DeviceSpec parsed(std::string_view text) {
  return parse_device_spec(Json::parse(text, "test"), "device");
}

std::string error_of(std::string_view text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "no error";
}

TEST(DeviceSpec, IsANameOrNothing) {
  for (std::string kind : {"auto", "cpu", "sim", "cuda"})
    EXPECT_EQ(parsed('"' + kind + '"').kind, kind);
  EXPECT_EQ(parsed("null").kind, "auto");
}

TEST(DeviceSpec, TakesGpuForCuda) {
  EXPECT_EQ(parsed(R"("gpu")").kind, "cuda");
  EXPECT_EQ(parsed(R"({"kind": "gpu"})").kind, "cuda");
}

TEST(DeviceSpec, HasDefaultsForEveryKey) {
  DeviceSpec spec = parsed("{}"), defaults;
  EXPECT_EQ(spec.kind, "auto");
  EXPECT_EQ(spec.step_ms, defaults.step_ms);
  EXPECT_EQ(spec.step_deviation_ms, 0);
  EXPECT_EQ(spec.copy_gb_s, defaults.copy_gb_s);
  EXPECT_FALSE(spec.virtual_time);
}

TEST(DeviceSpec, OnlyASimulatedDeviceHasAMemoryLimitByDefault) {
  EXPECT_EQ(parsed(R"("sim")").memory_gib, DeviceSpec().memory_gib);
  EXPECT_EQ(parsed(R"({"kind": "sim"})").memory_gib, DeviceSpec().memory_gib);
  EXPECT_TRUE(std::isinf(parsed(R"("cpu")").memory_gib));
  EXPECT_TRUE(std::isinf(parsed(R"({"kind": "cpu"})").memory_gib));
  EXPECT_EQ(parsed(R"({"kind": "cpu", "memory_gib": 0.5})").memory_gib, 0.5);
}

TEST(DeviceSpec, TakesEveryKey) {
  DeviceSpec spec = parsed(R"({"kind": "sim", "step_ms": 75, "copy_gb_s": 6.5,
                               "memory_gib": 0.5, "clock": "virtual"})");
  EXPECT_EQ(spec.kind, "sim");
  EXPECT_EQ(spec.step_ms, 75);
  EXPECT_EQ(spec.step_deviation_ms, 0);
  EXPECT_EQ(spec.copy_gb_s, 6.5);
  EXPECT_EQ(spec.memory_gib, 0.5);
  EXPECT_TRUE(spec.virtual_time);
  EXPECT_FALSE(parsed(R"({"clock": "wall"})").virtual_time);
}

TEST(DeviceSpec, AStepMayBeDrawn) {
  DeviceSpec spec = parsed(R"({"step_ms": {"mean": 75, "deviation": 5}})");
  EXPECT_EQ(spec.step_ms, 75);
  EXPECT_EQ(spec.step_deviation_ms, 5);
  EXPECT_EQ(parsed(R"({"step_ms": {"mean": 5}})").step_deviation_ms, 0);
}

TEST(DeviceSpec, RefusesWhatIsNeitherANameNorAnObject) {
  EXPECT_THAT(error_of("3"),
              HasSubstr("device: found 3, expected the name of a device or "
                        "an object"));
  EXPECT_THAT(error_of("[\"cpu\"]"), HasSubstr("expected the name"));
  EXPECT_THAT(error_of("\"tpu\""),
              HasSubstr("device: found \"tpu\", expected one of: auto, cpu, "
                        "sim, cuda"));
}

TEST(DeviceSpec, RefusesAnUnknownKeyAndNamesTheNearest) {
  EXPECT_THAT(error_of(R"({"step": 75})"),
              HasSubstr("device.step: there is no such key"));
  EXPECT_THAT(error_of(R"({"memory_gb": 1})"),
              HasSubstr("did you mean 'memory_gib'?"));
  EXPECT_THAT(error_of(R"({"step_ms": {"mean": 1, "deviaton": 1}})"),
              HasSubstr("device.step_ms.deviaton"));
}

TEST(DeviceSpec, RefusesValuesThatMeanNothing) {
  EXPECT_THAT(error_of(R"({"kind": "tpu"})"), HasSubstr("device.kind"));
  EXPECT_THAT(error_of(R"({"kind": 1})"), HasSubstr("device.kind"));
  EXPECT_THAT(error_of(R"({"step_ms": -1})"), HasSubstr("device.step_ms"));
  EXPECT_THAT(error_of(R"({"step_ms": "75"})"),
              HasSubstr("expected a number, or an object with 'mean'"));
  EXPECT_THAT(error_of(R"({"step_ms": {"deviation": 1}})"),
              HasSubstr("device.step_ms.mean: this key is missing"));
  EXPECT_THAT(error_of(R"({"step_ms": {"mean": 1, "deviation": -1}})"),
              HasSubstr("device.step_ms.deviation"));
  EXPECT_THAT(error_of(R"({"copy_gb_s": 0})"), HasSubstr("device.copy_gb_s"));
  EXPECT_THAT(error_of(R"({"memory_gib": 0})"), HasSubstr("device.memory_gib"));
  EXPECT_THAT(error_of(R"({"memory_gib": true})"),
              HasSubstr("expected a number"));
  EXPECT_THAT(error_of(R"({"clock": "fast"})"),
              HasSubstr("expected one of: wall, virtual"));
}

}  // namespace
}  // namespace penstock
