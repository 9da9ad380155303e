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

TEST(RanksThatShare, AreThoseOfOneHostWithTheSameProcessors) {
  const std::vector<std::string> hosts = {"a", "a", "b", "a", "b"};
  const std::vector<std::string> all = {"0-7", "0-7", "0-7", "0-7", "0-7"};
  EXPECT_EQ(ranks_that_share(0, hosts, all), 3);
  EXPECT_EQ(ranks_that_share(4, hosts, all), 2);
}

TEST(RanksThatShare, AreOneWhereEachHasProcessorsOfItsOwn) {
  EXPECT_EQ(ranks_that_share(1, {"a", "a"}, {"0-3", "4-7"}), 1);
}

}  // namespace
}  // namespace penstock
