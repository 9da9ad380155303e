#include "penstock/trainer/outcomes.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Outcomes, AreThoseOfTheRowsOfAllBatchesThatHaveATruth) {
  constexpr SampleId kThird[] = {77};
  Outcomes seen;
  seen.add({.loss = at::tensor({1.5F, 2.5F}),
            .truth = at::tensor({0, 1}),
            .guess = at::tensor({1, 1}),
            .weight = at::tensor({1.F, 0.F})});
  seen.add({.loss = at::tensor({3.5F}),
            .truth = at::tensor({2}),
            .guess = at::tensor({0}),
            .score = at::tensor({-4.F}),
            .before = at::tensor({5}),
            .weight = at::tensor({0.5F}),
            .samples = kThird});
  const std::vector<Outcome> rows = seen.take();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].loss, 1.5);
  EXPECT_EQ(rows[0].truth, 0);
  EXPECT_EQ(rows[0].guess, 1);
  EXPECT_EQ(rows[0].score, 0);
  EXPECT_EQ(rows[0].before, 0);
  EXPECT_EQ(rows[1].loss, 3.5);
  EXPECT_EQ(rows[1].truth, 2);
  EXPECT_EQ(rows[1].guess, 0);
  EXPECT_EQ(rows[1].score, -4);
  EXPECT_EQ(rows[1].before, 5);
  EXPECT_EQ(rows[0].sample, -1);
  EXPECT_EQ(rows[1].sample, 77);
}

TEST(Outcomes, BeginAnewWhenTheyAreTaken) {
  Outcomes seen;
  EXPECT_TRUE(seen.take().empty());
  seen.add({.loss = at::tensor({1.F}),
            .truth = at::tensor({0}),
            .guess = at::tensor({0}),
            .weight = at::tensor({1.F})});
  EXPECT_EQ(seen.take().size(), 1u);
  EXPECT_TRUE(seen.take().empty());
}

}  // namespace
}  // namespace penstock
