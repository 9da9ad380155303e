#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"
#include "penstock/cache/cache.h"

namespace penstock {
namespace {

using testing::HasSubstr;
constexpr std::size_t kMiB = std::size_t{1} << 20;

TierPlan plan(std::string tier, std::size_t device_free,
              std::optional<std::size_t> ram_free,
              bool device_is_host = false) {
  return plan_tiers({.rows = 1024, .row_bytes = 1024, .tier = std::move(tier)},
                    {.ram_free = ram_free,
                     .ram_origin = "MemAvailable",
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
  EXPECT_THAT(shown.text(), HasSubstr("* device: 1.0 MiB on the device, fits"));
  EXPECT_THAT(shown.text(), HasSubstr("free: 2.0 MiB on the host (MemAvailable"
                                      "), 2.0 MiB on the device"));
  EXPECT_EQ(shown.json().find("tiers")->array().size(), 3u);
}

TEST(PlanTiers, SaysWhatFitsOfTheTiersThatWereNotAskedFor) {
  TierPlan shown = plan("none", kMiB, 2 * kMiB);
  EXPECT_FALSE(shown.lines[0].fits);
  EXPECT_EQ(
      shown.lines[0].why,
      "needs 1.0 MiB on the device, 80 % of 1.0 MiB are free, not requested");
  EXPECT_TRUE(shown.lines[1].fits);
  EXPECT_EQ(shown.lines[1].why, "fits, not requested");
}

TEST(PlanTiers, CountsWhatThreadsHoldThatFinishRowsInEveryTier) {
  auto planned = [](std::size_t finishing) {
    return plan_tiers(
        {.rows = 1024, .row_bytes = 1024, .finishing_bytes = finishing},
        {.ram_free = 4 * kMiB, .device_free = 0});
  };
  const TierPlan without = planned(0), with = planned(kMiB);
  EXPECT_EQ(with.tier, Tier::ram);
  for (std::size_t line = 0; line < with.lines.size(); ++line)
    EXPECT_EQ(with.lines[line].host_bytes,
              without.lines[line].host_bytes + kMiB);
  EXPECT_EQ(planned(3 * kMiB).tier, Tier::none);
}

TEST(PlanTiers, TellsABudgetThatLacksFromAMemoryThatDoes) {
  auto ram = [](std::size_t free, std::size_t budget) {
    return plan_tiers({.rows = 1024,
                       .row_bytes = 1024,
                       .budgets = {.ram = budget},
                       .divisible = true},
                      {.ram_free = free, .device_is_host = true})
        .lines[1];
  };
  for (std::size_t budget : {std::size_t{0}, kMiB / 4}) {
    EXPECT_FALSE(ram(4 * kMiB, budget).fits);
    EXPECT_EQ(ram(4 * kMiB, budget).lacks_budget, "loader.cache.ram_gib");
    EXPECT_EQ(ram(kMiB, budget).lacks_budget, "") << "nor is there memory";
  }
  EXPECT_TRUE(ram(4 * kMiB, kMiB).fits);
  EXPECT_EQ(ram(4 * kMiB, kMiB).lacks_budget, "");
}

TEST(PlanTiers, UnknownMemoryRefusesNoTier) {
  TierPlan shown = plan("auto", 0, std::nullopt);
  EXPECT_EQ(shown.tier, Tier::ram);
  EXPECT_THAT(shown.lines[1].why, HasSubstr("free memory is unknown"));
  EXPECT_THAT(shown.text(), HasSubstr("free: n/a on the host"));
  EXPECT_TRUE(shown.json().find("host_free")->is_null());
}

/// 1 MiB of rows and a ring of 512 KiB of slots.
TierPlan plan_with_ring(std::string tier, std::size_t device_free,
                        std::size_t ram_free, bool device_is_host = false) {
  return plan_tiers({.rows = 1024,
                     .row_bytes = 1024,
                     .ring_device_bytes = kMiB / 2,
                     .ring_host_bytes = kMiB / 2,
                     .tier = std::move(tier)},
                    {.ram_free = ram_free,
                     .ram_origin = "MemAvailable",
                     .device_free = device_free,
                     .device_is_host = device_is_host});
}

TEST(PlanTiers, TheRingCountsWhereItLives) {
  TierPlan shown = plan_with_ring("auto", 8 * kMiB, 8 * kMiB);
  EXPECT_EQ(shown.lines[0].device_bytes, kMiB + kMiB / 2);
  EXPECT_EQ(shown.lines[0].host_bytes, 0u);
  EXPECT_EQ(shown.lines[1].device_bytes, kMiB / 2);
  EXPECT_EQ(shown.lines[1].host_bytes, kMiB + kMiB / 2);
  EXPECT_EQ(shown.lines[2].device_bytes, kMiB / 2);
  EXPECT_EQ(shown.lines[2].host_bytes, 8192 + kMiB / 2);
  Json json = shown.json();
  const Json& ram = json.find("tiers")->array()[1];
  EXPECT_EQ(ram.find("bytes")->integer(), std::int64_t{2 * kMiB});
  EXPECT_EQ(ram.find("rows_bytes")->integer(), std::int64_t{kMiB});
  EXPECT_THAT(
      shown.text(),
      HasSubstr("ram: 512.0 KiB on the device and 1.5 MiB on the host"));
}

TEST(PlanTiers, OnADeviceThatIsTheHostTheRingIsThereOnce) {
  TierPlan shown = plan_with_ring("auto", 0, 8 * kMiB, true);
  for (const TierPlan::Line& line : shown.lines)
    EXPECT_EQ(line.host_bytes, line.rows_bytes + kMiB / 2);
  EXPECT_EQ(shown.lines[1].device_bytes, 0u);
}

TEST(PlanTiers, PinnedSlotsMayTakeTheRoomOfTheRows) {
  EXPECT_EQ(plan("auto", kMiB, kMiB + kMiB / 2).tier, Tier::ram);
  EXPECT_EQ(plan_with_ring("auto", kMiB, kMiB + kMiB / 2).tier, Tier::none);
}

TEST(PlanTiers, ARingThatDoesNotFitIsToldBeforeAnythingIsAllocated) {
  for (const char* tier : {"auto", "device", "ram", "none"}) {
    try {
      plan_with_ring(tier, kMiB / 2, 64 * kMiB);
      FAIL() << tier;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
      EXPECT_THAT(error.parts().why,
                  HasSubstr("the ring of batches alone needs 512.0 KiB on the "
                            "device, 80 % of 512.0 KiB are free"));
      EXPECT_THAT(error.parts().next, HasSubstr("batch_size"));
    }
  }
  EXPECT_THROW(plan_with_ring("none", 8 * kMiB, kMiB / 2), Error)
      << "the pinned half of it";
}

/// 1 MiB of arrays that lie in host memory, and a ring of 512 KiB of slots.
TierPlan plan_of_arrays(std::string tier, std::size_t device_free,
                        std::optional<std::size_t> ram_free,
                        bool device_is_host = false) {
  return plan_tiers({.rows = 1024,
                     .row_bytes = 1024,
                     .ring_device_bytes = kMiB / 2,
                     .ring_host_bytes = kMiB / 2,
                     .tier = std::move(tier),
                     .in_ram = true},
                    {.ram_free = ram_free,
                     .ram_origin = "MemAvailable",
                     .device_free = device_free,
                     .device_is_host = device_is_host});
}

TEST(PlanTiers, ArraysTakeNoMoreMemoryWhereTheyLie) {
  TierPlan shown = plan_of_arrays("auto", 0, kMiB, true);
  EXPECT_EQ(shown.tier, Tier::ram);
  ASSERT_EQ(shown.lines.size(), 2u) << "they need not be read anew";
  EXPECT_EQ(shown.lines[1].rows_bytes, 0u);
  EXPECT_EQ(shown.lines[1].host_bytes, kMiB / 2) << "the ring";
  EXPECT_THAT(shown.text(), HasSubstr("* ram: 512.0 KiB on the host, fits: the "
                                      "arrays are used in place"));
  EXPECT_EQ(plan_of_arrays("device", 0, kMiB, true).lines[0].rows_bytes, 0u)
      << "the same memory";
  EXPECT_THAT(plan_of_arrays("ram", kMiB, std::nullopt).text(),
              HasSubstr("free memory is unknown: the arrays are used"));
}

TEST(PlanTiers, ArraysGoToTheDeviceWhereTheyFit) {
  TierPlan fits = plan_of_arrays("auto", 2 * kMiB, kMiB);
  EXPECT_EQ(fits.tier, Tier::device);
  EXPECT_EQ(fits.lines[0].rows_bytes, kMiB);
  EXPECT_EQ(fits.lines[0].why, "fits");
  TierPlan gathered = plan_of_arrays("auto", kMiB, kMiB);
  EXPECT_EQ(gathered.tier, Tier::ram);
  EXPECT_EQ(gathered.lines[1].host_bytes, kMiB / 2);
  EXPECT_EQ(gathered.lines[1].device_bytes, kMiB / 2);
}

TEST(PlanTiers, ArraysThatAreNotToBeGatheredAreOutOfMemoryOnTheDevice) {
  try {
    plan_of_arrays("device", kMiB, kMiB);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_THAT(error.parts().why, HasSubstr("needs 1.5 MiB on the device"));
  }
}

/// 1 MiB of rows that need not be on the host.
TierPlan plan_with_disk(std::string tier, std::size_t disk_free,
                        std::size_t ram_free, bool on_disk = false) {
  return plan_tiers({.rows = 1024,
                     .row_bytes = 1024,
                     .tier = std::move(tier),
                     .on_disk = on_disk,
                     .beside_rows = 9 * 1024},
                    {.disk_free = disk_free,
                     .disk_origin = "/stores",
                     .ram_free = ram_free,
                     .device_is_host = true});
}

TEST(PlanTiers, RowsThatDoNotFitMemoryGoToADisk) {
  EXPECT_EQ(plan_with_disk("auto", 8 * kMiB, 8 * kMiB).tier, Tier::ram);
  TierPlan shown = plan_with_disk("auto", 8 * kMiB, kMiB);
  EXPECT_EQ(shown.tier, Tier::disk);
  EXPECT_EQ(shown.lines[2].rows_bytes, kMiB);
  EXPECT_EQ(shown.lines[2].disk_bytes, kMiB + 9 * 1024 + 17 * 8);
  EXPECT_EQ(plan_with_disk("auto", kMiB, kMiB).tier, Tier::none);
}

TEST(PlanTiers, RowsThatAreOnADiskFitThereWhateverIsFree) {
  EXPECT_EQ(plan_with_disk("auto", 0, kMiB, true).tier, Tier::disk);
  EXPECT_EQ(plan_with_disk("disk", 0, kMiB, true).tier, Tier::disk);
}

TEST(PlanTiers, RowsThatDifferInLengthAreMappedWhereTheyAreInAStore) {
  TierRequest texts{.rows = 1024, .run_bytes = kMiB, .on_disk = true};
  const TierLimits limits{.disk_free = 0,
                          .disk_origin = "/stores",
                          .ram_free = 8 * kMiB,
                          .device_free = 8 * kMiB,
                          .device_is_host = true};
  const TierPlan plan = plan_tiers(texts, limits);
  EXPECT_EQ(plan.tier, Tier::disk);
  EXPECT_THAT(plan.text(), HasSubstr("its store is mapped instead"));
  TierLimits device = limits;
  device.device_is_host = false;
  EXPECT_EQ(plan_tiers(texts, device).tier, Tier::device);
  TierRequest other = texts;
  other.tier = "ram";
  EXPECT_EQ(plan_tiers(other, limits).tier, Tier::ram);
  other = texts;
  other.budgets.ram = 2 * kMiB;
  EXPECT_EQ(plan_tiers(other, limits).tier, Tier::ram);
  other = texts;
  other.on_disk = false;
  EXPECT_EQ(plan_tiers(other, limits).tier, Tier::ram);
  other = texts;
  other.row_bytes = 8;
  EXPECT_EQ(plan_tiers(other, limits).tier, Tier::ram);
}

TEST(PlanTiers, SaysHowManySuchRowsWouldFit) {
  TierPlan shown = plan_with_disk("auto", 8 * kMiB, kMiB);
  EXPECT_EQ(shown.lines[1].most_rows, 819);  // 80 % of 1 MiB
  EXPECT_EQ(shown.lines[2].most_rows, 8 * 819 + 1);
  EXPECT_THAT(shown.text(), HasSubstr("(room for 819 such rows)"));
  EXPECT_EQ(shown.json().find("tiers")->array()[1].find("most_rows")->integer(),
            819);
}

TEST(ShownBytes, PicksTheUnit) {
  EXPECT_EQ(shown_bytes(17), "17 B");
  EXPECT_EQ(shown_bytes(1536), "1.5 KiB");
  EXPECT_EQ(shown_bytes(std::size_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace penstock
