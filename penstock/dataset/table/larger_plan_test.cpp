#include "penstock/dataset/table/larger_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/dataset/rank_limits.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

class PlanLarger : public testing::Test {
 protected:
  LargerPlan plan() const {
    return plan_larger(request_, use_, {.ram_free = 1000});
  }
  LargerRequest request_{.shown = "field 'x'", .rows = 100, .bytes = 700};
  RowsUse use_{.epochs = 9};
};

TEST_F(PlanLarger, KeepsAllThatFits) {
  const LargerPlan found = plan();
  ASSERT_TRUE(found.keeping);
  EXPECT_EQ(found.bytes, 700U);
  EXPECT_EQ(found.keeping->most, 800U);
  EXPECT_EQ(found.keeping->left, 199U);
  EXPECT_THAT(found.note, HasSubstr("takes 700 B, which fits in memory: it is "
                                    "kept when it is first made"));
}

TEST_F(PlanLarger, KeepsAPartWhereTheRestIsReadFromMemoryAllTheSame) {
  request_.bytes = 1600;
  request_.others = 100;
  request_.read_again = 200;
  const LargerPlan found = plan();
  ASSERT_TRUE(found.keeping);
  EXPECT_EQ(found.bytes, 500U);
  EXPECT_EQ(found.keeping->most, 500U);
  EXPECT_THAT(found.note,
              HasSubstr("holds 31 rows in addition to the files, 200 B: "
                        "500 B of it are kept"));
  request_.read_again = 600;
  EXPECT_FALSE(plan().keeping);
  EXPECT_THAT(plan().note,
              HasSubstr("holds 6 rows in addition to the files, 600 B: "
                        "it is made again in every epoch"));
  request_.read_again = 5000;
  EXPECT_THAT(plan().note, HasSubstr("holds 0 rows in addition to the files"));
}

TEST_F(PlanLarger, SaysNothingOfRowsThatTakeNothing) {
  request_.bytes = 0;
  EXPECT_FALSE(plan().keeping);
  EXPECT_EQ(plan().note, "");
}

TEST_F(PlanLarger, KeepsNothingWhereRowsComeTooSeldomAgain) {
  use_.epochs = 2;
  EXPECT_FALSE(plan().keeping);
  EXPECT_EQ(plan().note, "");
  use_.epochs = 9;
  use_.first_epoch = 7;
  EXPECT_FALSE(plan().keeping);
  use_.first_epoch = 0;
  use_.ranks = 4;
  EXPECT_TRUE(plan().keeping);
  use_.ranks = 5;
  EXPECT_FALSE(plan().keeping);
  EXPECT_THAT(plan().note,
              HasSubstr("each of 5 ranks gets each row about once"));
}

TEST_F(PlanLarger, SaysWhenItBeginsWhereNobodyKnowsTheEpochs) {
  use_.epochs.reset();
  EXPECT_THAT(plan().note, HasSubstr("from the second epoch on"));
  use_.ranks = 3;
  EXPECT_THAT(plan().note, HasSubstr("from epoch 4 on"));
}

TEST(RankLimits, AreAPartOfTheMachinesMemory) {
  RowsUse use;
  EXPECT_EQ(rank_note(use), "");
  use.ranks = 8;
  EXPECT_THAT(rank_note(use),
              HasSubstr("8 ranks; the number of ranks on this machine"));
  EXPECT_EQ(ranks_sharing("auto", use), 1);
  use.ranks_here = 1;
  EXPECT_THAT(rank_note(use), HasSubstr("no other rank runs on this machine"));
  use.ranks_here = 4;
  EXPECT_THAT(rank_note(use), HasSubstr("8 ranks; 4 of them"));
  const HostLimits all = read_host_limits(), part = rank_limits("auto", use);
  ASSERT_EQ(all.memory_free.has_value(), part.memory_free.has_value());
  if (!part.memory_free) return;
  EXPECT_LT(*part.memory_free, *all.memory_free / 2);
  EXPECT_THAT(part.free_origin, HasSubstr("1/4 of "));
  EXPECT_THAT(rank_limits("ram", use).free_origin, Not(HasSubstr("1/4 of ")));
}

}  // namespace
}  // namespace penstock
