#include "penstock/device/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A folder whose part for CUDA is no library.
class BrokenPart : public testing::Test {
 protected:
  BrokenPart() {
    char name[] = "/tmp/penstock-part-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ / "libpenstock_device_cuda.so") << "no library\n";
    ::setenv("PENSTOCK_PARTS", folder_.c_str(), 1);
  }
  ~BrokenPart() override {
    ::unsetenv("PENSTOCK_PARTS");
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
};

TEST_F(BrokenPart, IsAnErrorThatNamesItForWhoWantsCuda) {
  try {
    open_device({.kind = "cuda"});
    FAIL() << "a device was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.parts().code, "device.part_broken");
    EXPECT_THAT(error.parts().where, HasSubstr(folder_.string()));
    EXPECT_THAT(error.parts().why, HasSubstr("file too short"));
    EXPECT_THAT(error.parts().next, HasSubstr("use 'cpu'"));
  }
}

TEST_F(BrokenPart, IsOneWarningForWhoLeavesTheChoiceToUs) {
  std::vector<std::string> lines;
  set_log_writer([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(line);
  });
  std::string name = open_device({.kind = "auto"})->name();
  set_log_writer({});
  EXPECT_EQ(name, "cpu");
  EXPECT_THAT(lines, ElementsAre(HasSubstr(folder_.string())));
}

TEST(DevicePlugin, ThatIsMissingSaysThatTheDeviceWasNotBuilt) {
  try {
    load_cuda_plugin({"/nowhere", "/nowhere/else"});
    FAIL() << "a part was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.parts().code, "device.not_built");
    EXPECT_THAT(error.parts().why, HasSubstr("/nowhere, /nowhere/else"));
    EXPECT_THAT(error.parts().next, HasSubstr("nvcc"));
  }
}

}  // namespace
}  // namespace penstock
