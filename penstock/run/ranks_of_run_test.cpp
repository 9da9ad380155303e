#include "penstock/run/ranks_of_run.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(RanksOfOneGpu, AreTwoOfOneMachineWithOneAddress) {
  EXPECT_EQ(ranks_of_one_gpu({"01:00", "02:00", "01:00"}, {"a", "a", "a"}),
            std::pair(0, 2));
}

TEST(RanksOfOneGpu, AreNoneWhereEachHasItsOwn) {
  EXPECT_FALSE(ranks_of_one_gpu({"01:00", "02:00"}, {"a", "a"}));
  EXPECT_FALSE(ranks_of_one_gpu({"01:00", "01:00"}, {"a", "b"}));
  EXPECT_FALSE(ranks_of_one_gpu({"", ""}, {"a", "a"})) << "they have no GPU";
}

}  // namespace
}  // namespace penstock
