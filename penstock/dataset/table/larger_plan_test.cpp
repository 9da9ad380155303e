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
    return plan_larger(request_, options_, {.ram_free = 1000});
  }
  LargerRequest request_{.shown = "field 'x'", .rows = 100, .bytes = 700};
  TableDatasetOptions options_ = with_epochs(9);

 private:
  static TableDatasetOptions with_epochs(std::int64_t epochs) {
    TableDatasetOptions options;
    options.epochs = epochs;
    return options;
  }
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
  options_.epochs = 2;
  EXPECT_FALSE(plan().keeping);
  EXPECT_EQ(plan().note, "");
  options_.epochs = 9;
  options_.first_epoch = 7;
  EXPECT_FALSE(plan().keeping);
  options_.first_epoch = 0;
  options_.ranks = 4;
  EXPECT_TRUE(plan().keeping);
  options_.ranks = 5;
  EXPECT_FALSE(plan().keeping);
  EXPECT_THAT(plan().note,
              HasSubstr("each of 5 ranks gets each row about once"));
}

TEST_F(PlanLarger, SaysWhenItBeginsWhereNobodyKnowsTheEpochs) {
  options_.epochs.reset();
  EXPECT_THAT(plan().note, HasSubstr("from the second epoch on"));
  options_.ranks = 3;
  EXPECT_THAT(plan().note, HasSubstr("from epoch 4 on"));
}

TEST(RankLimits, AreAPartOfTheMachinesMemory) {
  TableDatasetOptions options;
  EXPECT_EQ(rank_note(options), "");
  options.ranks = 8;
  EXPECT_THAT(rank_note(options),
              HasSubstr("8 ranks; the number of ranks on this machine"));
  EXPECT_EQ(ranks_sharing(options), 1);
  options.ranks_here = 1;
  EXPECT_THAT(rank_note(options),
              HasSubstr("no other rank runs on this machine"));
  options.ranks_here = 4;
  EXPECT_THAT(rank_note(options), HasSubstr("8 ranks; 4 of them"));
  const HostLimits all = read_host_limits(), part = rank_limits(options);
  ASSERT_EQ(all.memory_free.has_value(), part.memory_free.has_value());
  if (!part.memory_free) return;
  EXPECT_LT(*part.memory_free, *all.memory_free / 2);
  EXPECT_THAT(part.free_origin, HasSubstr("1/4 of "));
  options.cache = "ram";  // as the job says
  EXPECT_THAT(rank_limits(options).free_origin, Not(HasSubstr("1/4 of ")));
}

}  // namespace
}  // namespace penstock
