#include "penstock/device/cuda/absence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cuda {
namespace {

using testing::HasSubstr;

Answer answer() { return {.driver = 13010, .runtime = 13000, .devices = 1}; }

TEST(Absence, ADeviceIsThereWhenTheRuntimeCountsOneWithoutAProblem) {
  EXPECT_TRUE(has_device(answer()));
  Answer none = answer();
  none.devices = 0;
  EXPECT_FALSE(has_device(none));
  Answer broken = answer();
  broken.problem = "cudaErrorUnknown";
  EXPECT_FALSE(has_device(broken));
  Answer old = answer();
  old.old_driver = true;
  EXPECT_FALSE(has_device(old));
}

TEST(Absence, OfADriverIsSaid) {
  Error error = absence({.driver = 0,
                         .runtime = 13000,
                         .old_driver = true,
                         .problem = "cudaErrorInsufficientDriver"});
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_EQ(error.parts().code, "device.no_driver");
  EXPECT_THAT(error.what(), HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(error.parts().next, HasSubstr("--gpus all"));
}

TEST(Absence, OfANewEnoughDriverNamesBothVersions) {
  Error error = absence({.driver = 12040,
                         .runtime = 13000,
                         .old_driver = true,
                         .problem = "cudaErrorInsufficientDriver"});
  EXPECT_EQ(error.parts().code, "device.old_driver");
  EXPECT_THAT(error.parts().why, HasSubstr("supports CUDA 12.4"));
  EXPECT_THAT(error.parts().why, HasSubstr("needs CUDA 13.0"));
}

TEST(Absence, OfAGpuShowsWhatHidesIt) {
  Answer hidden = answer();
  hidden.devices = 0;
  hidden.problem = "cudaErrorNoDevice";
  hidden.visible = "7";
  Error error = absence(hidden);
  EXPECT_EQ(error.parts().code, "device.no_gpu");
  EXPECT_THAT(error.parts().why, HasSubstr("CUDA_VISIBLE_DEVICES is '7'"));
  hidden.visible = "";
  EXPECT_THAT(absence(hidden).parts().why,
              testing::Not(HasSubstr("CUDA_VISIBLE")));
}

TEST(Absence, ForAnotherReasonNamesCudasWordForIt) {
  Answer broken = answer();
  broken.problem = "cudaErrorSystemNotReady";
  Error error = absence(broken);
  EXPECT_EQ(error.parts().code, "device.cuda");
  EXPECT_THAT(error.parts().why, HasSubstr("cudaErrorSystemNotReady"));
}

TEST(Absence, OfCodeForAnOldGpuNamesItsCapability) {
  Error error = too_old("cuda:0 Tesla T4", 7, 5);
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_EQ(error.parts().code, "device.too_old");
  EXPECT_THAT(error.parts().why, HasSubstr("Tesla T4 has compute capability "
                                           "7.5"));
}

}  // namespace
}  // namespace penstock::cuda
