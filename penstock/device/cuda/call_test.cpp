#include "penstock/device/cuda/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock::cuda {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> logged(cudaError_t result) {
  std::vector<std::string> lines;
  set_log_writer([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(line);
  });
  check_quietly(result, "cudaFree", "cuda:0");
  set_log_writer({});
  return lines;
}

TEST(CudaCall, ThatSucceedsIsNothing) {
  check(cudaSuccess, "cudaFree", "cuda:0");
  EXPECT_THAT(logged(cudaSuccess), IsEmpty());
}

TEST(CudaCall, ThatFailsIsADeviceErrorWithItsNameAndCudasWord) {
  try {
    check(cudaErrorIllegalAddress, "cudaMemcpyAsync", "cuda:0 H200");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.parts().code, "device.cuda");
    EXPECT_EQ(error.parts().what, "cudaMemcpyAsync failed");
    EXPECT_EQ(error.parts().where, "device 'cuda:0 H200'");
    EXPECT_THAT(error.parts().why, AllOf(HasSubstr("cudaErrorIllegalAddress"),
                                         HasSubstr("queued earlier")));
  }
}

TEST(CudaCall, ThatFindsNoMemoryIsOutOfMemory) {
  try {
    check(cudaErrorMemoryAllocation, "cudaStreamCreate", "cuda:0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_EQ(error.parts().code, "device.out_of_memory");
    EXPECT_EQ(error.parts().what, "cudaStreamCreate failed");
  }
}

TEST(CudaCall, ThatFailsInADestructorIsLogged) {
  EXPECT_THAT(logged(cudaErrorInvalidValue),
              ElementsAre(AllOf(HasSubstr("cudaFree failed"),
                                HasSubstr("cudaErrorInvalidValue"))));
}

TEST(CudaCall, ThatFailsBecauseTheProgramEndsIsNothing) {
  EXPECT_THAT(logged(cudaErrorCudartUnloading), IsEmpty());
}

}  // namespace
}  // namespace penstock::cuda
