#include "penstock/base/once.h"

#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <vector>

namespace penstock {
namespace {

TEST(Once, DoesItOnceForAllThreads) {
  Once once;
  int done = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        once.call([&] { ++done; });
        EXPECT_EQ(done, 1);  // by whomever
      });
  }
  EXPECT_EQ(done, 1);
}

TEST(Once, TriesAgainWhatHasThrown) {
  Once once;
  int tries = 0;
  auto work = [&] {
    if (++tries == 1) throw std::bad_alloc();
  };
  EXPECT_THROW(once.call(work), std::bad_alloc);
  once.call(work);
  once.call(work);
  EXPECT_EQ(tries, 2);
}

}  // namespace
}  // namespace penstock
