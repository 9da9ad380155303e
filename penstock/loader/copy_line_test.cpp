#include "penstock/loader/copy_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "penstock/device/device.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

/// Batches of 1 MB, whose copies take 1 ms each of virtual time.
class CopyLineTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1'000'000;

  CopyLineTest() {
    for (std::int64_t number = 0; number < 5; ++number) {
      auto slot = std::make_shared<Slot>();
      slot->number = number;
      slot->host = device_->allocate_pinned(kBytes);
      slot->target = device_->allocate(kBytes);
      slot->copied_bytes = kBytes;
      std::memset(slot->host.data(), static_cast<int>(number), kBytes);
      slots_.push_back(slot);
    }
  }
  void add(std::size_t number) { line_.add(slots_[number]); }
  /// The batches whose copies are queued now, in the order in which they are.
  std::vector<std::int64_t> sent() {
    std::vector<std::int64_t> numbers;
    std::shared_ptr<Slot> slot;
    while (line_.next(slot)) {
      numbers.push_back(slot->number);
      copied_[slot->number] = slot->copied;
    }
    return numbers;
  }

  DeviceSpec spec_{.kind = "sim", .copy_gb_s = 1, .virtual_time = true};
  std::unique_ptr<Device> device_ = open_device(spec_);
  std::vector<std::shared_ptr<Slot>> slots_;
  std::map<std::int64_t, Event> copied_;
  CopyLine line_{*device_};
};

TEST_F(CopyLineTest, TheEarliestBatchGoesFirstWhateverIsFilledFirst) {
  add(0);
  EXPECT_THAT(sent(), ElementsAre(0));
  add(3);
  add(2);
  EXPECT_THAT(sent(), IsEmpty()) << "batch 0 is being copied";
  add(1);
  EXPECT_THAT(sent(), ElementsAre(1, 2, 3));
  line_.settle();
  EXPECT_EQ(device_->clock().now(), milliseconds(4));
}

TEST_F(CopyLineTest, ALaterOneGoesBeforeItsTurnOnlyWhereNothingIsCopied) {
  add(2);
  EXPECT_THAT(sent(), ElementsAre(2));
  add(1);
  EXPECT_THAT(sent(), IsEmpty());
  device_->clock().sleep_until(milliseconds(1));
  EXPECT_THAT(sent(), ElementsAre(1));
  add(4);
  add(0);
  EXPECT_THAT(sent(), ElementsAre(0));
  add(3);
  EXPECT_THAT(sent(), ElementsAre(3, 4));
  line_.settle();
  EXPECT_EQ(device_->clock().now(), milliseconds(5));
}

TEST_F(CopyLineTest, ABatchHasArrivedWhenItsCopyHasEnded) {
  add(0);
  add(1);
  ASSERT_THAT(sent(), ElementsAre(0, 1));
  copied_[0].wait();
  EXPECT_EQ(device_->clock().now(), milliseconds(1));
  EXPECT_EQ(slots_[0]->target.data()[5], std::byte{0});
  copied_[1].wait();
  EXPECT_EQ(slots_[1]->target.data()[5], std::byte{1});
}

// As it was with a stream for each thread: whatever is filled first is copied
// first.
TEST_F(CopyLineTest, WithoutTurnsTheEarliestWouldArriveLast) {
  for (std::size_t number : {3u, 2u, 1u, 0u}) line_.copy(*slots_[number]);
  slots_[0]->copied.wait();
  EXPECT_EQ(device_->clock().now(), milliseconds(4));
}

TEST_F(CopyLineTest, WaitsForItsCopiesAtItsEnd) {
  {
    CopyLine line(*device_);
    line.add(slots_[0]);
    std::shared_ptr<Slot> slot;
    ASSERT_TRUE(line.next(slot));
  }
  EXPECT_EQ(device_->clock().now(), milliseconds(1));
}

}  // namespace
}  // namespace penstock
