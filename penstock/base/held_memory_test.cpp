#include "penstock/base/held_memory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penstock {
namespace {

HeldMemory held(HeldFor owner, HeldIn place) {
  for (const HeldMemory& found : held_memory())
    if (found.owner == owner && found.place == place) return found;
  return {};
}

TEST(HeldMemoryTest, WhatIsHeldIsCountedUntilItsChargeGoes) {
  const std::size_t before = held(HeldFor::copies, HeldIn::pinned).bytes;
  {
    MemoryCharge charge(HeldFor::copies, HeldIn::pinned, 1000);
    EXPECT_EQ(held(HeldFor::copies, HeldIn::pinned).bytes, before + 1000);
    charge.change_to(300);
    EXPECT_EQ(held(HeldFor::copies, HeldIn::pinned).bytes, before + 300);
    EXPECT_GE(held(HeldFor::copies, HeldIn::pinned).peak, before + 1000);
  }
  EXPECT_EQ(held(HeldFor::copies, HeldIn::pinned).bytes, before);
  EXPECT_GE(held(HeldFor::copies, HeldIn::pinned).peak, before + 1000);
}

TEST(HeldMemoryTest, AChargeMovesWithItsMemory) {
  const std::size_t before = held(HeldFor::keys, HeldIn::host).bytes;
  MemoryCharge first(HeldFor::keys, HeldIn::host, 70);
  MemoryCharge second(HeldFor::keys, HeldIn::host, 5);
  second = std::move(first);
  EXPECT_EQ(second.bytes(), 70u);
  EXPECT_EQ(held(HeldFor::keys, HeldIn::host).bytes, before + 70);
  second = {};
  EXPECT_EQ(held(HeldFor::keys, HeldIn::host).bytes, before);
}

TEST(HeldMemoryTest, ThreadsChargeAtOnce) {
  const std::size_t before = held(HeldFor::records, HeldIn::host).bytes;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (std::size_t i = 1; i < 2000; ++i) {
        MemoryCharge charge(HeldFor::records, HeldIn::host, i);
        charge.change_to(2 * i);
      }
    });
  threads.clear();
  EXPECT_EQ(held(HeldFor::records, HeldIn::host).bytes, before);
  EXPECT_GE(held(HeldFor::records, HeldIn::host).peak, before + 2 * 1999);
}

TEST(HeldMemoryTest, EachOwnerAndPlaceHasAName) {
  for (const HeldMemory& found : held_memory()) {
    EXPECT_STRNE(name_of(found.owner), "");
    EXPECT_STRNE(name_of(found.place), "");
  }
}

}  // namespace
}  // namespace penstock
