#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/device/device.h"
#include "tests/conformance/no_device.h"

/// What every device must do, whatever it is made of. Device memory is only
/// touched through streams here. A new device joins with five lines:
///
///     INSTANTIATE_TEST_SUITE_P(
///         Fpga, DeviceSuite,
///         testing::Values(DeviceCase{
///             .name = "fpga", .open = open_fpga, .counts_memory = true}),
///         device_case_name);
namespace penstock::conformance {

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> open;
  /// Device::memory() knows every byte, so that a leak shows.
  bool counts_memory = false;
  /// Why this machine lacks the hardware; empty when it has it. Not set: the
  /// device is everywhere.
  std::function<std::string()> missing;
};

inline std::string device_case_name(
    const testing::TestParamInfo<DeviceCase>& info) {
  return info.param.name;
}
inline void PrintTo(const DeviceCase& device, std::ostream* out) {
  *out << device.name;
}

using ByteVector = std::vector<std::byte>;

inline ByteVector random_bytes(std::size_t size, std::uint64_t seed) {
  Random random(seed, 0, 0, 0);
  ByteVector bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

inline ByteVector bytes_of(const Buffer& host) {
  return ByteVector(host.data(), host.data() + host.size());
}

/// A table of random rows with three fields of odd sizes, out of order.
struct TestTable {
  static constexpr std::int64_t kRows = 500;
  static constexpr std::size_t kRowBytes = 48;
  ByteVector bytes = random_bytes(kRows * kRowBytes, 17);

  static std::vector<GatherField> fields(const std::byte* table, std::byte* out,
                                         std::size_t count) {
    return {{table + 40, kRowBytes, 8, out},
            {table, kRowBytes, 33, out + 8 * count},
            {table + 33, kRowBytes, 1, out + 41 * count}};
  }
  static constexpr std::size_t kOutPerRow = 42;

  /// Some rows twice, some -1.
  static std::vector<std::int64_t> rows(std::size_t count, std::uint64_t seed) {
    Random random(seed, 1, 0, 0);
    std::vector<std::int64_t> rows(count);
    for (std::int64_t& row : rows)
      row = static_cast<std::int64_t>(random.below(kRows + 1)) - 1;
    return rows;
  }
  ByteVector expected(const std::vector<std::int64_t>& rows) const {
    ByteVector out(rows.size() * kOutPerRow);
    std::vector<GatherField> parts =
        fields(bytes.data(), out.data(), rows.size());
    run_on_host(Gather{parts, rows});
    return out;
  }
};

class DeviceSuite : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    if (GetParam().missing)
      if (std::string why = GetParam().missing(); !why.empty()) {
        no_device(why);
        return;
      }
    device_ = GetParam().open();
    free_ = device_->memory().free;
  }
  /// Nothing is borrowed for ever.
  void TearDown() override {
    if (device_ && GetParam().counts_memory) {
      EXPECT_EQ(device_->memory().free, free_);
    }
  }

  Buffer pinned(const ByteVector& bytes) {
    Buffer buffer = device_->allocate_pinned(bytes.size());
    std::ranges::copy(bytes, buffer.data());
    return buffer;
  }
  Buffer upload(Stream& stream, const ByteVector& bytes) {
    Buffer host = pinned(bytes);
    Buffer there = device_->allocate(bytes.size());
    stream.copy(there.data(), host.data(), bytes.size());
    stream.record().wait();
    return there;
  }
  ByteVector download(Stream& stream, const Buffer& from) {
    Buffer host = device_->allocate_pinned(from.size());
    stream.copy(host.data(), from.data(), from.size());
    stream.record().wait();
    return bytes_of(host);
  }
  ByteVector gathered(Stream& stream, const Buffer& table,
                      std::vector<std::int64_t> rows) {
    Buffer out = device_->allocate(rows.size() * TestTable::kOutPerRow);
    std::vector<GatherField> fields =
        TestTable::fields(table.data(), out.data(), rows.size());
    stream.run(Gather{fields, rows});
    // The call has copied what its spans showed.
    std::ranges::fill(rows, 1);
    std::ranges::fill(fields, GatherField{});
    return download(stream, out);
  }

  /// Each thread with a stream of its own on the one device.
  void work_on_threads(std::size_t count) {
    TestTable table;
    auto work = [&](std::size_t thread) {
      std::unique_ptr<Stream> stream = device_->make_stream();
      Buffer there = upload(*stream, table.bytes);
      for (std::size_t round = 0; round < 20; ++round) {
        auto rows = TestTable::rows(64 + round, 100 * thread + round);
        EXPECT_EQ(gathered(*stream, there, rows), table.expected(rows));
      }
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  }

  std::unique_ptr<Device> device_;
  std::size_t free_ = 0;
};

TEST_P(DeviceSuite, ACopyHasArrivedWhenItsEventHasPassed) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  ByteVector bytes = random_bytes(100'003, 1);
  Buffer there = upload(*stream, bytes);
  EXPECT_EQ(download(*stream, there), bytes);
}

TEST_P(DeviceSuite, CopiesStartAnywhereInABuffer) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  ByteVector bytes = random_bytes(64, 1);
  Buffer there = upload(*stream, bytes);
  Buffer host = pinned(ByteVector(64));
  stream->copy(host.data() + 5, there.data() + 31, 33);
  stream->synchronize();
  ByteVector expected(64);
  std::copy_n(bytes.begin() + 31, 33, expected.begin() + 5);
  EXPECT_EQ(bytes_of(host), expected);
}

TEST_P(DeviceSuite, ADefaultEventHasPassed) {
  Event event;
  EXPECT_TRUE(event.passed());
  event.wait();
  device_->make_stream()->wait(event);
}

TEST_P(DeviceSuite, AnEventThatWasWaitedForHasPassed) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  stream->step(0);
  Event event = stream->record();
  event.wait();
  EXPECT_TRUE(event.passed());
  Nanoseconds time = event.time();  // asked before now() is
  EXPECT_LE(time, device_->clock().now());
}

TEST_P(DeviceSuite, TheTimesOfEventsFollowTheOrderOfTheStream) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  Buffer there = device_->allocate(1 << 20);
  Buffer host = device_->allocate_pinned(1 << 20);
  std::vector<Event> events;
  for (std::uint64_t i = 0; i < 5; ++i) {
    stream->copy(there.data(), host.data(), host.size());
    stream->step(i);
    events.push_back(stream->record());
  }
  std::vector<Nanoseconds> times;
  for (const Event& event : events) times.push_back(event.time());
  EXPECT_TRUE(std::ranges::is_sorted(times));
}

TEST_P(DeviceSuite, AStreamDoesItsWorkInTheOrderOfTheCalls) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  ByteVector first = random_bytes(4096, 1), second = random_bytes(4096, 2);
  Buffer from_first = pinned(first), from_second = pinned(second);
  Buffer to_first = pinned(second), to_second = pinned(first);
  Buffer there = device_->allocate(4096);
  stream->copy(there.data(), from_first.data(), 4096);
  stream->step(0);
  stream->copy(to_first.data(), there.data(), 4096);
  stream->copy(there.data(), from_second.data(), 4096);
  stream->copy(to_second.data(), there.data(), 4096);
  stream->record().wait();
  EXPECT_EQ(bytes_of(to_first), first);
  EXPECT_EQ(bytes_of(to_second), second);
}

TEST_P(DeviceSuite, SynchronizeWaitsForAllWork) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  ByteVector bytes = random_bytes(1 << 20, 3);
  Buffer from = pinned(bytes), to = pinned(ByteVector(bytes.size()));
  Buffer there = device_->allocate(bytes.size());
  stream->copy(there.data(), from.data(), bytes.size());
  stream->copy(to.data(), there.data(), bytes.size());
  stream->synchronize();
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_P(DeviceSuite, AnEventOrdersTheWorkOfTwoStreams) {
  std::unique_ptr<Stream> copies = device_->make_stream();
  std::unique_ptr<Stream> reads = device_->make_stream();
  ByteVector bytes = random_bytes(1 << 20, 4);
  Buffer from = pinned(bytes), to = pinned(ByteVector(bytes.size()));
  Buffer there = device_->allocate(bytes.size());
  copies->copy(there.data(), from.data(), bytes.size());
  reads->wait(copies->record());
  reads->copy(to.data(), there.data(), bytes.size());
  reads->record().wait();
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_P(DeviceSuite, AnUntimedEventOrdersTheWorkOfTwoStreamsAsWell) {
  std::unique_ptr<Stream> copies = device_->make_stream();
  std::unique_ptr<Stream> reads = device_->make_stream();
  ByteVector bytes = random_bytes(1 << 20, 9);
  Buffer from = pinned(bytes), to = pinned(ByteVector(bytes.size()));
  Buffer there = device_->allocate(bytes.size());
  copies->copy(there.data(), from.data(), bytes.size());
  reads->wait(copies->record_untimed());
  reads->copy(to.data(), there.data(), bytes.size());
  Event read = reads->record_untimed();
  read.wait();
  EXPECT_TRUE(read.passed());
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_P(DeviceSuite, ANullHandleBorrowsAStreamThatWorks) {
  std::unique_ptr<Stream> stream = device_->borrow_stream(nullptr);
  ByteVector bytes = random_bytes(100'003, 10);
  Buffer there = upload(*stream, bytes);
  EXPECT_EQ(download(*stream, there), bytes);
}

TEST_P(DeviceSuite, EventsOrderTheWorkOfStreamsInARow) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(device_->make_stream());
  ByteVector bytes = random_bytes(1 << 16, 5);
  Buffer from = pinned(bytes), to = pinned(ByteVector(bytes.size()));
  Buffer there = device_->allocate(bytes.size());
  streams[0]->copy(there.data(), from.data(), bytes.size());
  for (std::size_t i = 1; i < 4; ++i)
    streams[i]->wait(streams[i - 1]->record());
  streams[3]->copy(to.data(), there.data(), bytes.size());
  streams[3]->synchronize();
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_P(DeviceSuite, AnEventOfAnotherDeviceOrdersWorkToo) {
  std::unique_ptr<Device> other = GetParam().open();
  std::unique_ptr<Stream> theirs = other->make_stream();
  std::unique_ptr<Stream> ours = device_->make_stream();
  ByteVector bytes = random_bytes(4096, 6);
  Buffer from = pinned(bytes), middle = pinned(ByteVector(4096));
  Buffer there = other->allocate(4096), here = device_->allocate(4096);
  theirs->copy(there.data(), from.data(), 4096);
  theirs->copy(middle.data(), there.data(), 4096);
  ours->wait(theirs->record());
  ours->copy(here.data(), middle.data(), 4096);
  EXPECT_EQ(download(*ours, here), bytes);
}

TEST_P(DeviceSuite, AnEventOutlivesItsStream) {
  ByteVector bytes = random_bytes(4096, 7);
  Buffer from = pinned(bytes), to = pinned(ByteVector(4096));
  Buffer there = device_->allocate(4096);
  Event event;
  {
    std::unique_ptr<Stream> stream = device_->make_stream();
    stream->copy(there.data(), from.data(), 4096);
    stream->copy(to.data(), there.data(), 4096);
    event = stream->record();
  }
  event.wait();
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_P(DeviceSuite, AGatherIsWhatTheHostGives) {
  TestTable table;
  std::unique_ptr<Stream> stream = device_->make_stream();
  Buffer there = upload(*stream, table.bytes);
  for (std::size_t count : {1u, 2u, 7u, 256u, 1000u}) {
    std::vector<std::int64_t> rows = TestTable::rows(count, count);
    EXPECT_EQ(gathered(*stream, there, rows), table.expected(rows)) << count;
  }
}

TEST_P(DeviceSuite, ARowOfMinusOneGivesZeros) {
  TestTable table;
  std::unique_ptr<Stream> stream = device_->make_stream();
  Buffer there = upload(*stream, table.bytes);
  EXPECT_EQ(gathered(*stream, there, {-1, -1, -1}),
            ByteVector(3 * TestTable::kOutPerRow));
}

TEST_P(DeviceSuite, ATableMayBePartlyInOtherAndInPinnedMemory) {
  constexpr std::size_t kFirst = 30, kSecond = 40;  // rows
  TestTable table;
  std::unique_ptr<Stream> stream = device_->make_stream();
  auto rows_of = [&](std::size_t begin, std::size_t end) {
    auto at = table.bytes.begin();
    auto bytes = static_cast<std::ptrdiff_t>(TestTable::kRowBytes);
    return ByteVector(at + static_cast<std::ptrdiff_t>(begin) * bytes,
                      at + static_cast<std::ptrdiff_t>(end) * bytes);
  };
  Buffer first = upload(*stream, rows_of(0, kFirst));
  Buffer second = upload(*stream, rows_of(kFirst, kSecond));
  Buffer third =
      pinned(rows_of(kSecond, static_cast<std::size_t>(TestTable::kRows)));
  const GatherPiece pieces[] = {
      piece_of(kFirst, second.data(), first.data(), TestTable::kRowBytes),
      piece_of(kSecond, third.data(), first.data(), TestTable::kRowBytes)};
  std::vector<std::int64_t> rows = TestTable::rows(500, 3);
  Buffer out = device_->allocate(rows.size() * TestTable::kOutPerRow);
  std::vector<GatherField> fields =
      TestTable::fields(first.data(), out.data(), rows.size());
  stream->run(Gather{fields, rows, pieces});
  EXPECT_EQ(download(*stream, out), table.expected(rows));
}

TEST_P(DeviceSuite, AGatherTakesEachFieldFromATableOfItsOwn) {
  constexpr std::size_t kRows = 100;
  std::unique_ptr<Stream> stream = device_->make_stream();
  std::vector<std::int64_t> rows{99, 0, -1, 7, 7};
  std::vector<ByteVector> expected;
  std::vector<Buffer> tables, outs;
  std::vector<GatherField> fields;
  for (std::size_t bytes : {1u, 3u, 8u, 64u, 1024u, 1000u, 2u}) {
    ByteVector table = random_bytes(kRows * bytes, bytes);
    ByteVector& right = expected.emplace_back();
    for (std::int64_t row : rows)
      for (std::size_t i = 0; i < bytes; ++i)
        right.push_back(row < 0
                            ? std::byte{0}
                            : table[static_cast<std::size_t>(row) * bytes + i]);
    tables.push_back(upload(*stream, table));
    outs.push_back(device_->allocate(right.size()));
    fields.push_back({tables.back().data(), bytes, bytes, outs.back().data()});
  }
  stream->run(Gather{fields, rows});
  for (std::size_t f = 0; f < fields.size(); ++f)
    EXPECT_EQ(download(*stream, outs[f]), expected[f]) << fields[f].bytes;
}

TEST_P(DeviceSuite, AKernelOfTheHostTakesItsTurnInTheStream) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  if (!stream->runs_host_code()) {
    EXPECT_THROW(stream->run(HostKernel{.run = [] { FAIL(); }}), Error);
    return;
  }
  ByteVector bytes = random_bytes(4096, 11);
  Buffer from = pinned(bytes), to = pinned(ByteVector(4096));
  Buffer there = device_->allocate(4096), changed = device_->allocate(4096);
  stream->copy(there.data(), from.data(), 4096);
  std::byte* in = there.data();
  std::byte* out = changed.data();
  stream->run(
      HostKernel{.read = {{in, 4096}}, .written = {{out, 4096}}, .run = [=] {
                   for (std::size_t i = 0; i < 4096; ++i) out[i] = ~in[i];
                 }});
  stream->copy(to.data(), changed.data(), 4096);
  stream->record().wait();
  for (std::byte& byte : bytes) byte = ~byte;
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_P(DeviceSuite, NoRowsNoFieldsAndNoBytesAreNoWork) {
  TestTable table;
  std::unique_ptr<Stream> stream = device_->make_stream();
  Buffer there = upload(*stream, table.bytes);
  std::vector<std::int64_t> rows{0};
  std::vector<GatherField> fields =
      TestTable::fields(there.data(), there.data(), 0);
  stream->run(Gather{fields, {}});
  stream->run(Gather{{}, rows});
  fields = {{}};
  stream->run(Gather{fields, rows});
  stream->copy(there.data(), nullptr, 0);
  EXPECT_EQ(download(*stream, there), table.bytes);
}

TEST_P(DeviceSuite, ManyStreamsDoNotDisturbEachOther) {
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Buffer> from, there, to;
  for (std::uint64_t i = 0; i < 32; ++i) {
    streams.push_back(device_->make_stream());
    from.push_back(pinned(random_bytes(1000, i)));
    there.push_back(device_->allocate(1000));
    to.push_back(device_->allocate_pinned(1000));
    streams[i]->copy(there[i].data(), from[i].data(), 1000);
  }
  for (std::size_t i = 0; i < 32; ++i)
    streams[i]->copy(to[i].data(), there[i].data(), 1000);
  for (std::size_t i = 32; i-- > 0;) {
    streams[i]->record().wait();
    EXPECT_EQ(bytes_of(to[i]), bytes_of(from[i])) << i;
  }
}

TEST_P(DeviceSuite, WorksOnOneThread) { work_on_threads(1); }
TEST_P(DeviceSuite, WorksOnTwoThreads) { work_on_threads(2); }
TEST_P(DeviceSuite, WorksOnEightThreads) { work_on_threads(8); }

// Two slots between two threads. Neither thread waits for the device: only
// events keep a slot from being read too early or overwritten too early.
TEST_P(DeviceSuite, EventsHandSlotsFromThreadToThreadAndBack) {
  constexpr std::size_t kRounds = 50, kSlots = 2, kBytes = 2000;
  std::vector<Buffer> from, to, slots;
  for (std::size_t i = 0; i < kSlots; ++i)
    slots.push_back(device_->allocate(kBytes));
  for (std::size_t i = 0; i < kRounds; ++i) {
    from.push_back(pinned(random_bytes(kBytes, i)));
    to.push_back(device_->allocate_pinned(kBytes));
  }
  std::vector<std::promise<Event>> ready(kRounds), returned(kRounds);
  std::jthread producer([&] {
    std::unique_ptr<Stream> stream = device_->make_stream();
    for (std::size_t i = 0; i < kRounds; ++i) {
      if (i >= kSlots) stream->wait(returned[i - kSlots].get_future().get());
      stream->copy(slots[i % kSlots].data(), from[i].data(), kBytes);
      ready[i].set_value(stream->record());
    }
  });
  std::unique_ptr<Stream> stream = device_->make_stream();
  for (std::size_t i = 0; i < kRounds; ++i) {
    stream->wait(ready[i].get_future().get());
    stream->copy(to[i].data(), slots[i % kSlots].data(), kBytes);
    stream->step(i);
    returned[i].set_value(stream->record());
  }
  stream->synchronize();
  for (std::size_t i = 0; i < kRounds; ++i)
    EXPECT_EQ(bytes_of(to[i]), bytes_of(from[i])) << i;
}

TEST_P(DeviceSuite, BuffersAreMovedAndGivenBackOnce) {
  Buffer kept;
  for (int i = 0; i < 20; ++i) {
    Buffer buffer = device_->allocate(1 << 20);
    EXPECT_EQ(buffer.size(), std::size_t{1} << 20);
    EXPECT_EQ(buffer.kind(), device_->memory_kind());
    std::byte* address = buffer.data();
    kept = std::move(buffer);
    EXPECT_EQ(kept.data(), address);
  }
  if (GetParam().counts_memory) {
    EXPECT_EQ(device_->memory().free, free_ - (std::size_t{1} << 20));
  }
}

TEST_P(DeviceSuite, ABufferMayBeEmpty) {
  EXPECT_EQ(device_->allocate(0).size(), 0u);
  EXPECT_EQ(device_->allocate_pinned(0).size(), 0u);
}

TEST_P(DeviceSuite, AnAllocationBeyondItsMemoryIsOutOfMemoryWithNumbers) {
  DeviceMemory memory = device_->memory();
  EXPECT_LE(memory.free, memory.total);
  std::size_t asked = memory.total + (std::size_t{1} << 30);
  try {
    Buffer buffer = device_->allocate(asked);
    FAIL() << "got " << buffer.size() << " of " << memory.total << " bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_EQ(error.parts().code, "device.out_of_memory");
    EXPECT_THAT(error.parts().why, testing::HasSubstr(std::to_string(asked)));
    EXPECT_THAT(error.parts().why,
                testing::HasSubstr(std::to_string(memory.total)));
    EXPECT_THAT(error.parts().where, testing::HasSubstr(device_->name()));
  }
  std::unique_ptr<Stream> stream = device_->make_stream();
  ByteVector bytes = random_bytes(100, 8);
  EXPECT_EQ(download(*stream, upload(*stream, bytes)), bytes);
}

}  // namespace penstock::conformance
