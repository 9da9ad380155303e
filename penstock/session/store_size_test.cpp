#include "penstock/session/store_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/fake/test_folder.h"

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// The half of a store of 100 MiB.
ScanProgress half() {
  ScanProgress progress;
  progress.share = 0.5;
  progress.stored_bytes = 50 * kMiB;
  return progress;
}

TEST(StoreSize, RefusesWhatDoesNotFitWithItsParts) {
  StoreSize enough({.folder = "/d", .free = 201 * kMiB}, {});
  EXPECT_NO_THROW(enough.check(half()));
  StoreSize size({.folder = "/d", .free = 199 * kMiB}, {});
  try {
    size.check(half());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "prepare.disk");
    EXPECT_THAT(error.parts().why, HasSubstr("will take about 200.0 MiB, and"));
  }
}

TEST(StoreSize, PartsThatAreThereNeedNoRoom) {
  StoreSize enough({.folder = "/d", .free = 141 * kMiB, .parts = 60 * kMiB},
                   {});
  EXPECT_NO_THROW(enough.check(half()));
  StoreSize size({.folder = "/d", .free = 139 * kMiB, .parts = 60 * kMiB}, {});
  try {
    size.check(half());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.parts().why, HasSubstr(", of which 60.0 MiB exist"));
  }
}

TEST(StoreSize, SaysNothingOfTooFewRowsAndOfUnknownRoom) {
  ScanProgress few = half();
  few.share = 0.01;
  EXPECT_NO_THROW(StoreSize({.folder = "/d", .free = 1}, {}).check(few));
  EXPECT_NO_THROW(StoreSize({.folder = "/d"}, {}).check(half()));
  ScanProgress found = half();
  found.found_share = found.share;
  EXPECT_NO_THROW(StoreSize({.folder = "/d", .free = 1}, {}).check(found));
}

TEST(StoreRoom, IsFreeOfWhatKilledWritersLeftAndKnowsTheParts) {
  const TestFolder folder;
  const std::string left = folder.write("a.store.tmp.00", "half");
  const std::string other = folder.write("b.store.tmp.00", "another's");
  folder.write("a.store.parts/0-9.part", "123456");
  folder.write("a.store.parts/9-20.part", "1234");
  const StoreRoom room = room_for(folder.path("a.store"));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_EQ(room.parts, 10u);
  EXPECT_GT(room.free, 0u);
  EXPECT_EQ(room_for(folder.path("b.store")).parts, 0u);
}

}  // namespace
}  // namespace penstock
