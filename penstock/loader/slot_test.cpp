#include "penstock/loader/slot.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

/// An event that cannot be waited for.
struct BrokenEvent final : Event::State {
  bool passed() override { return false; }
  void wait() override { throw 7; }
  Nanoseconds time() override { throw 7; }
};

/// A stream that takes no event; synchronize() fails too where it shall.
struct BrokenStream final : Stream {
  explicit BrokenStream(bool ends) : ends(ends) {}
  void copy(std::byte*, const std::byte*, std::size_t) override {}
  void run(DeviceOperation) override {}
  void wait(const Event&) override {}
  void step(std::uint64_t) override {}
  void synchronize() override {
    ++synchronized;
    if (!ends) throw 7;
  }
  const bool ends;
  int synchronized = 0;

 private:
  Event recorded(bool) override { throw 7; }
};

struct SlotTest : testing::Test {
  SlotTest() {
    set_log_writer([this](LogLevel, std::string_view) { ++warnings; });
    slot->ring = ring;
  }
  ~SlotTest() override { set_log_writer({}); }

  std::shared_ptr<SlotRing> ring = std::make_shared<SlotRing>();
  std::shared_ptr<Slot> slot = std::make_shared<Slot>();
  int warnings = 0;
};

TEST_F(SlotTest, ItEndsWhateverItsEventsThrow) {
  slot->ready = Event(std::make_shared<BrokenEvent>());
  slot.reset();
  EXPECT_EQ(warnings, 1);
}

TEST_F(SlotTest, AStreamThatTakesNoEventIsWaitedFor) {
  BrokenStream stream(true);
  std::weak_ptr<Slot> same = slot;
  {
    Batch batch(std::move(slot));
    batch.wait_on(stream);
  }
  EXPECT_EQ(stream.synchronized, 1);
  EXPECT_EQ(ring->take(), same.lock());
}

TEST_F(SlotTest, ABatchKeepsAStreamAliveUntilItIsDestroyed) {
  auto stream = std::make_shared<BrokenStream>(true);
  std::weak_ptr<Stream> same = stream;
  {
    Batch batch(std::move(slot));
    batch.wait_on(std::move(stream));
    EXPECT_FALSE(same.expired());
  }
  EXPECT_TRUE(same.expired());
}

// The leak is on purpose, and a sanitizer would tell of it.
#ifndef PENSTOCK_SANITIZED
TEST_F(SlotTest, MemoryThatMayStillBeReadIsNotUsedAgain) {
  BrokenStream stream(false);
  std::weak_ptr<Slot> same = slot;
  {
    Batch batch(std::move(slot));
    batch.wait_on(stream);
  }
  EXPECT_EQ(warnings, 1);
  EXPECT_FALSE(same.expired());
  ring->close();
  EXPECT_EQ(ring->take(), nullptr);
}
#endif

}  // namespace
}  // namespace penstock
