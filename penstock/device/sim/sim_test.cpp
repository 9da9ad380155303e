#include "penstock/device/sim/sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/log.h"

namespace penstock {
namespace {

using std::chrono::microseconds;
using testing::Each;
using testing::HasSubstr;

std::vector<std::byte> bytes_of(const Buffer& buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}

// A device that copies one byte per microsecond, in virtual time that starts
// at 0. Its memory is host memory, so a test can look at what a kernel that
// did not wait would see.
class SimTest : public testing::Test {
 protected:
  Buffer host(std::size_t size, int value) {
    Buffer buffer = sim_->allocate_pinned(size);
    std::fill_n(buffer.data(), size, std::byte(value));
    return buffer;
  }
  Nanoseconds now() const { return clock_.now(); }

  VirtualClock clock_;
  std::unique_ptr<Device> sim_ =
      open_sim({.copy_gb_s = 0.001, .memory_gib = 1.0 / 1024}, clock_);
  std::unique_ptr<Stream> stream_ = sim_->make_stream();
  std::unique_ptr<Stream> other_ = sim_->make_stream();
};

TEST_F(SimTest, NewMemoryIsPoison) {
  EXPECT_THAT(bytes_of(sim_->allocate(100)), Each(kPoison));
  EXPECT_THAT(bytes_of(sim_->allocate_pinned(100)), Each(kPoison));
}

TEST_F(SimTest, TheTargetOfACopyIsPoisonUntilItIsWaitedFor) {
  Buffer from = host(10, 1), there = sim_->allocate(10), back = host(10, 2);
  stream_->copy(there.data(), from.data(), 10);
  Event up = stream_->record();
  EXPECT_THAT(bytes_of(there), Each(kPoison));
  up.wait();
  EXPECT_THAT(bytes_of(there), Each(std::byte{1}));
  stream_->copy(back.data(), there.data(), 10);
  EXPECT_THAT(bytes_of(back), Each(kPoison));
  stream_->synchronize();
  EXPECT_THAT(bytes_of(back), Each(std::byte{1}));
}

TEST_F(SimTest, TheTargetOfAGatherIsPoisonUntilItIsWaitedFor) {
  Buffer from = host(8, 1), table = sim_->allocate(8), out = sim_->allocate(6);
  stream_->copy(table.data(), from.data(), 8);
  stream_->synchronize();
  std::fill_n(out.data(), 6, std::byte{3});
  std::vector<GatherField> fields{{table.data(), 4, 2, out.data()}};
  std::vector<std::int64_t> rows{1, -1};
  stream_->run(Gather{fields, rows});
  // Only what the gather writes is poisoned.
  EXPECT_THAT(bytes_of(out),
              testing::ElementsAre(kPoison, kPoison, kPoison, kPoison,
                                   std::byte{3}, std::byte{3}));
  stream_->synchronize();
  EXPECT_THAT(bytes_of(out),
              testing::ElementsAre(std::byte{1}, std::byte{1}, std::byte{0},
                                   std::byte{0}, std::byte{3}, std::byte{3}));
}

TEST_F(SimTest, AMaskIsSeenOnlyWhenItIsWaitedFor) {
  Buffer from = host(4, 1), there = sim_->allocate(4);
  stream_->copy(there.data(), from.data(), 4);
  stream_->synchronize();
  const MaskBox box{.left = 1, .height = 1, .width = 2};
  stream_->run(Mask{.out = there.data(),
                    .rows = 1,
                    .height = 1,
                    .width = 4,
                    .element_bytes = 1,
                    .value = 9,
                    .boxes = {&box, 1}});
  EXPECT_THAT(bytes_of(there), Each(std::byte{1}));
  stream_->synchronize();
  EXPECT_THAT(bytes_of(there),
              testing::ElementsAre(std::byte{1}, std::byte{9}, std::byte{9},
                                   std::byte{1}));
}

TEST_F(SimTest, AMaskAfterACopyKeepsWhatWasCopied) {
  Buffer from = host(4, 1), there = sim_->allocate(4);
  const MaskBox box{.left = 3, .height = 1, .width = 1};
  stream_->copy(there.data(), from.data(), 4);
  stream_->run(Mask{.out = there.data(),
                    .rows = 1,
                    .height = 1,
                    .width = 4,
                    .element_bytes = 1,
                    .boxes = {&box, 1}});
  EXPECT_THAT(bytes_of(there), Each(kPoison));
  stream_->synchronize();
  EXPECT_THAT(bytes_of(there),
              testing::ElementsAre(std::byte{1}, std::byte{1}, std::byte{1},
                                   std::byte{0}));
}

TEST_F(SimTest, TimeAloneMakesNoWorkVisible) {
  Buffer from = host(10, 1), there = sim_->allocate(10);
  stream_->copy(there.data(), from.data(), 10);
  clock_.sleep_until(std::chrono::hours(1));
  EXPECT_THAT(bytes_of(there), Each(kPoison));
}

TEST_F(SimTest, AnEventPassesWhenItsTimeHasComeAndThenItsWorkIsDone) {
  Buffer from = host(10, 1), there = sim_->allocate(10);
  stream_->copy(there.data(), from.data(), 10);
  Event event = stream_->record();
  clock_.sleep_until(microseconds(10) - Nanoseconds(1));
  EXPECT_FALSE(event.passed());
  EXPECT_THAT(bytes_of(there), Each(kPoison));
  clock_.sleep_until(microseconds(10));
  EXPECT_TRUE(event.passed());
  EXPECT_THAT(bytes_of(there), Each(std::byte{1}));
}

TEST_F(SimTest, WaitingForAnEventDoesNoLaterWork) {
  Buffer from = host(10, 1), first = sim_->allocate(10);
  Buffer second = sim_->allocate(10);
  stream_->copy(first.data(), from.data(), 10);
  Event event = stream_->record();
  stream_->copy(second.data(), from.data(), 10);
  event.wait();
  EXPECT_THAT(bytes_of(first), Each(std::byte{1}));
  EXPECT_THAT(bytes_of(second), Each(kPoison));
}

TEST_F(SimTest, AMissingWaitBetweenStreamsShowsPoison) {
  Buffer from = host(10, 1), there = sim_->allocate(10), back = host(10, 2);
  stream_->copy(there.data(), from.data(), 10);
  other_->copy(back.data(), there.data(), 10);
  other_->synchronize();
  EXPECT_THAT(bytes_of(back), Each(kPoison));
}

TEST_F(SimTest, AWaitBetweenStreamsBringsTheOthersWorkWithIt) {
  Buffer from = host(10, 1), there = sim_->allocate(10), back = host(10, 2);
  stream_->copy(there.data(), from.data(), 10);
  other_->wait(stream_->record());
  other_->copy(back.data(), there.data(), 10);
  Event event = other_->record();
  EXPECT_EQ(event.time(), microseconds(20));
  EXPECT_THAT(bytes_of(back), Each(std::byte{1}));
}

TEST_F(SimTest, OverwritingWhatAnotherStreamStillReadsSpoilsIt) {
  Buffer first = host(10, 1), second = host(10, 2), back = host(10, 3);
  Buffer there = sim_->allocate(10);
  stream_->copy(there.data(), first.data(), 10);
  stream_->synchronize();
  stream_->copy(back.data(), there.data(), 10);
  other_->copy(there.data(), second.data(), 10);
  stream_->synchronize();
  EXPECT_THAT(bytes_of(back), Each(kPoison));
}

TEST_F(SimTest, OverwritingInTheOrderOfAStreamSpoilsNothing) {
  Buffer first = host(10, 1), second = host(10, 2), back = host(10, 3);
  Buffer there = sim_->allocate(10);
  stream_->copy(there.data(), first.data(), 10);
  stream_->synchronize();
  stream_->copy(back.data(), there.data(), 10);
  Event read = stream_->record();
  other_->wait(read);
  other_->copy(there.data(), second.data(), 10);
  read.wait();
  EXPECT_THAT(bytes_of(back), Each(std::byte{1}));
  EXPECT_THAT(bytes_of(there), Each(kPoison));
  other_->synchronize();
  EXPECT_THAT(bytes_of(there), Each(std::byte{2}));
}

TEST_F(SimTest, AHostBufferThatIsFilledAgainTooEarlyGivesWrongData) {
  Buffer from = host(10, 1), there = sim_->allocate(10);
  stream_->copy(there.data(), from.data(), 10);
  std::fill_n(from.data(), 10, std::byte{9});
  stream_->synchronize();
  EXPECT_THAT(bytes_of(there), Each(std::byte{9}));
}

TEST_F(SimTest, MemoryEndsAtItsLimitAndComesBack) {
  constexpr std::size_t kLimit = 1 << 20;
  EXPECT_EQ(sim_->memory().total, kLimit);
  Buffer most = sim_->allocate(kLimit - 1000);
  EXPECT_EQ(sim_->memory().free, 1000u);
  Buffer rest = sim_->allocate(1000);
  try {
    sim_->allocate(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_EQ(error.parts().why,
              "requested 1 bytes, free: 0 bytes of 1 MiB (1048576 bytes)");
  }
  most = Buffer();
  EXPECT_EQ(sim_->memory().free, kLimit - 1000);
  EXPECT_EQ(sim_->allocate(kLimit - 1000).size(), kLimit - 1000);
}

TEST_F(SimTest, PinnedMemoryIsOfTheHost) {
  Buffer pinned = sim_->allocate_pinned(std::size_t{2} << 20);
  EXPECT_EQ(sim_->memory().free, sim_->memory().total);
  EXPECT_EQ(pinned.kind(), MemoryKind::cpu);
}

TEST_F(SimTest, WorkWhoseBufferIsFreedNeverHappensAndIsReported) {
  std::vector<std::string> lines;
  set_log_writer([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(line);
  });
  Buffer from = host(10, 1), there = sim_->allocate(10), kept = host(10, 5);
  {
    Buffer pinned = host(10, 1);
    stream_->copy(there.data(), pinned.data(), 10);
  }
  stream_->copy(there.data(), from.data(), 10);
  stream_->copy(kept.data(), there.data(), 10);
  there = Buffer();
  set_log_writer({});
  stream_->synchronize();
  EXPECT_THAT(bytes_of(kept), Each(kPoison));
  EXPECT_THAT(lines, testing::ElementsAre(HasSubstr("dropped operations: 1"),
                                          HasSubstr("dropped operations: 2")));
}

TEST_F(SimTest, AFullQueueWaitsForItsOldestWork) {
  Buffer from = host(1, 1), there = sim_->allocate(kSimMostPending + 2);
  for (std::size_t i = 0; i < kSimMostPending; ++i)
    stream_->copy(there.data() + i, from.data(), 1);
  EXPECT_EQ(now(), Nanoseconds(0));
  EXPECT_EQ(there.data()[0], kPoison);
  stream_->copy(there.data() + kSimMostPending, from.data(), 1);
  EXPECT_EQ(now(), microseconds(1));
  EXPECT_EQ(there.data()[0], std::byte{1});
  EXPECT_EQ(there.data()[1], kPoison);
}

TEST_F(SimTest, AStreamThatFollowsAClosedOneIsAStreamOfItsOwn) {
  Buffer from = host(10, 1), first = sim_->allocate(10);
  Buffer second = sim_->allocate(10);
  stream_->copy(first.data(), from.data(), 10);
  Event event = stream_->record();
  stream_ = nullptr;
  stream_ = sim_->make_stream();
  stream_->copy(second.data(), from.data(), 10);
  event.wait();
  EXPECT_THAT(bytes_of(first), Each(std::byte{1}));
  EXPECT_THAT(bytes_of(second), Each(kPoison));
}

class SimMistakes : public SimTest {
 protected:
  std::string mistake(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
      return error.what();
    }
    return "no error";
  }
  /// Of rows of 10 bytes.
  void gather(const std::byte* table, std::size_t bytes,
              std::vector<std::int64_t> rows, std::byte* out) {
    std::vector<GatherField> fields{{table, 10, bytes, out}};
    stream_->run(Gather{fields, rows});
  }
  Buffer from_ = host(100, 1);
  Buffer there_ = sim_->allocate(100);
  Buffer out_ = sim_->allocate(100);
};

TEST_F(SimMistakes, ACopyStaysInItsBuffer) {
  EXPECT_THAT(
      mistake([&] { stream_->copy(there_.data() + 1, from_.data(), 100); }),
      HasSubstr("extends beyond its buffer"));
  EXPECT_THAT(
      mistake([&] { stream_->copy(from_.data(), there_.data() + 50, 51); }),
      HasSubstr("extends beyond its buffer"));
}

TEST_F(SimMistakes, ACopyIsNotFromHostToHost) {
  EXPECT_THAT(
      mistake([&] { stream_->copy(from_.data(), from_.data() + 50, 50); }),
      HasSubstr("from host to host"));
}

TEST_F(SimMistakes, AGatherStaysInItsTableItsRowsAndItsTarget) {
  const std::byte* table = there_.data();
  EXPECT_THAT(mistake([&] { gather(table, 4, {10}, out_.data()); }),
              HasSubstr("beyond its buffer"));
  std::vector<std::byte> pageable(100);
  EXPECT_THAT(mistake([&] { gather(pageable.data(), 4, {1}, out_.data()); }),
              HasSubstr("beyond its buffer"));
  EXPECT_THAT(mistake([&] { gather(from_.data(), 4, {10}, out_.data()); }),
              HasSubstr("beyond its buffer"));
  EXPECT_THAT(mistake([&] { gather(table, 4, {-2}, out_.data()); }),
              HasSubstr("below -1"));
  EXPECT_THAT(mistake([&] { gather(table, 11, {0}, out_.data()); }),
              HasSubstr("extends beyond its row"));
  EXPECT_THAT(mistake([&] {
                gather(table, 4, {0, 1}, out_.data() + 93);
              }),
              HasSubstr("beyond its target"));
  EXPECT_THAT(mistake([&] { gather(table, 4, {0}, from_.data()); }),
              HasSubstr("beyond its target"));
}

TEST_F(SimMistakes, EachTableOfAGatherHasAnEndOfItsOwn) {
  Buffer small = sim_->allocate(20);
  std::vector<GatherField> fields{{there_.data(), 10, 4, out_.data()},
                                  {small.data(), 10, 4, out_.data() + 50}};
  std::vector<std::int64_t> rows{1};
  stream_->run(Gather{fields, rows});
  rows = {2};
  EXPECT_THAT(mistake([&] {
                stream_->run(Gather{fields, rows});
              }),
              HasSubstr("beyond its buffer"));
}

TEST_F(SimTest, ATableThatIsFreedTakesItsGatherWithIt) {
  Buffer first = sim_->allocate(10), second = sim_->allocate(10);
  Buffer out = sim_->allocate(20);
  std::vector<GatherField> fields{{first.data(), 10, 10, out.data()},
                                  {second.data(), 10, 10, out.data() + 10}};
  std::vector<std::int64_t> rows{0};
  stream_->run(Gather{fields, rows});
  std::fill_n(first.data(), 10, std::byte{1});
  second = Buffer();
  stream_->synchronize();
  EXPECT_THAT(bytes_of(out), Each(kPoison));
}

TEST(SimOnTheWallClock, ACopyIsPoisonUntilItIsWaitedFor) {
  std::unique_ptr<Device> sim = open_sim({.kind = "sim"});
  std::unique_ptr<Stream> stream = sim->make_stream();
  Buffer from = sim->allocate_pinned(10), there = sim->allocate(10);
  std::fill_n(from.data(), 10, std::byte{1});
  stream->copy(there.data(), from.data(), 10);
  Event event = stream->record();
  EXPECT_THAT(bytes_of(there), Each(kPoison));
  event.wait();
  EXPECT_THAT(bytes_of(there), Each(std::byte{1}));
}

}  // namespace
}  // namespace penstock
