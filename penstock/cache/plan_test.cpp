#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"

namespace penstock {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TierPlan plan(std::string wish, std::size_t device_free, std::size_t ram_free,
              bool device_is_host = false) {
  return plan_tiers({.rows = 1024, .row_bytes = 1024, .wish = std::move(wish)},
                    {.ram_free = ram_free,
                     .device_free = device_free,
                     .device_is_host = device_is_host});
}

TEST(PlanTiers, TakesTheDeviceWhenTheRowsFit) {
  EXPECT_EQ(plan("auto", 2 * kMiB, 2 * kMiB).tier, Tier::device);
}

TEST(PlanTiers, FallsBackToRamAndThenToTheSource) {
  EXPECT_EQ(plan("auto", kMiB, 2 * kMiB).tier, Tier::ram);
  EXPECT_EQ(plan("auto", kMiB, kMiB).tier, Tier::none);
}

TEST(PlanTiers, KeepsRowsInRamOnADeviceThatIsTheHost) {
  EXPECT_EQ(plan("auto", 0, 8 * kMiB, true).tier, Tier::ram);
  EXPECT_EQ(plan("device", 0, 8 * kMiB, true).tier, Tier::device);
}

TEST(PlanTiers, FollowsAWish) {
  EXPECT_EQ(plan("ram", 8 * kMiB, 8 * kMiB).tier, Tier::ram);
  EXPECT_EQ(plan("none", 8 * kMiB, 8 * kMiB).tier, Tier::none);
}

TEST(PlanTiers, AWishThatDoesNotFitIsOutOfMemoryWithBothNumbers) {
  try {
    plan("device", kMiB, 8 * kMiB);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_THAT(error.parts().why, testing::HasSubstr("needs 1.0 MiB"));
    EXPECT_THAT(error.parts().where, testing::HasSubstr("\"device\""));
  }
}

TEST(PlanTiers, ShowsEveryTierWithItsBytes) {
  TierPlan shown = plan("auto", 2 * kMiB, 2 * kMiB);
  EXPECT_THAT(shown.text(), testing::HasSubstr("* device: 1.0 MiB of 2.0 MiB"));
  EXPECT_EQ(shown.json().find("tiers")->array().size(), 3u);
}

TEST(ShownBytes, PicksTheUnit) {
  EXPECT_EQ(shown_bytes(17), "17 B");
  EXPECT_EQ(shown_bytes(1536), "1.5 KiB");
  EXPECT_EQ(shown_bytes(std::size_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace penstock
