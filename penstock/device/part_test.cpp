#include "penstock/device/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(DevicePart, ThatIsMissingSaysThatTheDeviceWasNotBuilt) {
  try {
    load_cuda_part({"/nowhere", "/nowhere/else"});
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
