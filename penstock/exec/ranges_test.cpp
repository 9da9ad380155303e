#include "penstock/exec/ranges.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/sync.h"

namespace penstock {
namespace {

class InRanges : public testing::TestWithParam<int> {};

TEST_P(InRanges, EveryNumberIsMetOnce) {
  for (std::int64_t count : {0, 1, 7, 1000}) {
    Mutex mutex;
    std::vector<int> met(static_cast<std::size_t>(count));
    in_ranges(GetParam(), count, [&](std::int64_t begin, std::int64_t end) {
      Lock lock(mutex);
      for (; begin < end; ++begin) ++met[static_cast<std::size_t>(begin)];
    });
    EXPECT_EQ(met, std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST_P(InRanges, TheLowestErrorIsHeard) {
  try {
    in_ranges(GetParam(), 1000, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin)
        if (begin % 100 == 99)
          throw Error(ErrorKind::transform, {.what = std::to_string(begin)});
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().what, "99");
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, InRanges, testing::Values(0, 1, 2, 8));

}  // namespace
}  // namespace penstock
