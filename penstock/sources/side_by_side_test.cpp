#include "penstock/sources/side_by_side.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace penstock {
namespace {

TEST(SideBySide, DoesEachOfThemOnce) {
  for (const std::size_t count : {0U, 1U, 100U}) {
    std::vector<std::atomic<int>> times(count);
    side_by_side(count, [&](std::size_t at) { ++times[at]; });
    for (const std::atomic<int>& one : times) EXPECT_EQ(one, 1);
  }
}

TEST(SideBySide, ThrowsWhatOneOfThemThrew) {
  auto work = [](std::size_t at) {
    if (at == 7) throw std::runtime_error("odd");
  };
  EXPECT_THROW(side_by_side(100, work), std::runtime_error);
}

// As in the test of a Stage.
#ifndef PENSTOCK_SANITIZED
TEST(SideBySideDeathTest, DoesThemAllWhereNoMoreThreadsStart) {
  auto without_threads = [] {
    constexpr uid_t kSomebody = 54321;
    if (::geteuid() == 0 && ::setresuid(kSomebody, kSomebody, kSomebody) != 0)
      std::_Exit(6);
    rlimit none{.rlim_cur = 1, .rlim_max = 1};
    ::setrlimit(RLIMIT_NPROC, &none);
    std::atomic<int> done = 0;
    side_by_side(100, [&](std::size_t) { ++done; });
    std::_Exit(done == 100 ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(without_threads(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace penstock
