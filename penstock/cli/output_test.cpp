#include "penstock/cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace penstock {
namespace {

using testing::HasSubstr;

template <class Thrown>
Error error_after(Thrown thrown) {
  try {
    throw thrown;
  } catch (...) {
    return error_of_exception();
  }
}

TEST(ErrorOfException, IsAnErrorItself) {
  Error error = error_after(
      Error(ErrorKind::source, {.code = "test.code", .what = "a test"}));
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "test.code");
}

TEST(ErrorOfException, NamesMemoryThatIsNotThere) {
  Error error = error_after(std::bad_alloc());
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(error.parts().code, "memory.host");
}

TEST(ErrorOfException, NamesMemoryThatTheSystemDidNotHave) {
  auto error_of = [](std::errc reason) {
    return error_after(std::system_error(std::make_error_code(reason)));
  };
  EXPECT_EQ(error_of(std::errc::not_enough_memory).kind(),
            ErrorKind::out_of_memory);
  EXPECT_EQ(error_of(std::errc::io_error).kind(), ErrorKind::internal);
}

TEST(ErrorOfException, SaysWhatAStandardExceptionSays) {
  Error error = error_after(std::runtime_error("the reason"));
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_THAT(error.what(), HasSubstr("unexpected exception"));
  EXPECT_EQ(error.parts().why, "the reason");
}

TEST(ErrorOfException, IsThereForWhateverIsThrown) {
  Error error = error_after(42);
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_EQ(error.parts().code, "internal.exception");
  EXPECT_THAT(error.what(), HasSubstr("not a std::exception"));
}

}  // namespace
}  // namespace penstock
