#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/plugin.h"
#include "penstock/device/device.h"
#include "penstock/device/plugin.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// What a program that was built with CUDA does on a machine without a driver.
class NoDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr)
      GTEST_SKIP() << "this machine has an NVIDIA driver";
  }
};

TEST_F(NoDriver, ThePartIsFoundAndLoadedAllTheSame) {
  EXPECT_NE(load_cuda_plugin(plugin_folders()).open, nullptr);
}

TEST_F(NoDriver, OpeningCudaSaysWhatIsMissing) {
  try {
    open_device({.kind = "cuda"});
    FAIL() << "a device was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.parts().code, "device.no_driver");
    EXPECT_THAT(error.what(), HasSubstr("no NVIDIA driver"));
    EXPECT_FALSE(error.parts().next.empty());
  }
}

TEST_F(NoDriver, AutoTakesTheCpuAndSaysSoInTheLogOnly) {
  std::vector<std::string> lines;
  set_log_level(LogLevel::info);
  set_log_writer([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::info);
    lines.emplace_back(line);
  });
  std::string name = open_device({.kind = "auto"})->name();
  set_log_writer({});
  set_log_level(LogLevel::warning);
  EXPECT_EQ(name, "cpu");
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("the device is 'cpu'"),
                                       HasSubstr("no NVIDIA driver"))));
}

}  // namespace
}  // namespace penstock
