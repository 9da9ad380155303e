#include "penstock/cli/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(LocalRanks, CommandOfARankDoesNotStartMore) {
  EXPECT_THAT(command_of_rank(
                  {"penstock", "train", "job.json", "--ranks", "4", "--json"}),
              ElementsAre("penstock", "train", "job.json", "--json"));
  EXPECT_THAT(command_of_rank({"penstock", "--ranks=2", "train", "j.json"}),
              ElementsAre("penstock", "train", "j.json"));
  EXPECT_THAT(command_of_rank({"penstock", "train", "--set", "a=--ranks"}),
              ElementsAre("penstock", "train", "--set", "a=--ranks"));
}

TEST(LocalRanks, CommandNamesThemOrNot) {
  EXPECT_TRUE(names_ranks({"penstock", "train", "--ranks", "1"}));
  EXPECT_TRUE(names_ranks({"penstock", "train", "--ranks=1"}));
  EXPECT_FALSE(names_ranks({"penstock", "train", "job.json"}));
}

}  // namespace
}  // namespace penstock
