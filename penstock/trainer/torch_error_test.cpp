#include "penstock/trainer/torch_error.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "penstock/base/error.h"

// Under a sanitizer, too much memory is refused as elsewhere, not fatal.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

template <class Work>
Error error_of(Work work) {
  try {
    in_torch("testing", work);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "nothing was thrown"});
}

TEST(TorchError, GivesBackWhatTheWorkGives) {
  EXPECT_EQ(in_torch("testing", [] { return 7; }), 7);
}

TEST(TorchError, OfOursStaysAsItIs) {
  Error error = error_of([] {
    throw Error(ErrorKind::source, {.code = "mine", .what = "it is mine"});
  });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "mine");
}

TEST(TorchError, OfTheMathematicsIsInternalAndNamesNoFileOfLibtorch) {
  Error error = error_of([] {
    return at::matmul(at::ones({2, 3}), at::ones({2, 3}));
  });
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_EQ(error.parts().code, "trainer.libtorch");
  EXPECT_THAT(error.what(), HasSubstr("libtorch failed while testing"));
  EXPECT_THAT(error.what(), HasSubstr("shape"));
  EXPECT_THAT(error.parts().where, HasSubstr("libtorch "));
  EXPECT_THAT(error.what(), Not(HasSubstr(".cpp")));
}

TEST(TorchError, OfTheHostsMemoryIsOutOfMemory) {
  Error error = error_of([] { return at::empty({std::int64_t{1} << 55}); });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_THAT(error.what(), HasSubstr("testing"));
  EXPECT_THAT(error.parts().next, HasSubstr("train.micro_batch"));
}

TEST(TorchError, OfTheDevicesMemoryIsOutOfMemory) {
  Error error = error_of(
      [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "all is full"); });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(error.parts().why, "all is full");
}

TEST(TorchError, OfNewIsOutOfMemory) {
  EXPECT_EQ(error_of([] { throw std::bad_alloc(); }).kind(),
            ErrorKind::out_of_memory);
}

TEST(TorchError, OfTheAcceleratorIsOfTheDevice) {
  Error error = error_of([] {
    throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 700,
                                "an illegal memory access");
  });
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_EQ(error.parts().code, "trainer.device");
  EXPECT_THAT(error.parts().why, HasSubstr("an illegal memory access"));
}

TEST(TorchError, OfAnotherKindIsInternal) {
  Error error = error_of([] { throw std::runtime_error("odd"); });
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_EQ(error.parts().why, "odd");
}

}  // namespace
}  // namespace penstock
