#include "penstock/device/cpu/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "penstock/base/fake/test_memory.h"
#include "penstock/device/cpu/host_bytes.h"

#ifndef PENSTOCK_SANITIZED_THREAD  // which has an operator new of its own

namespace penstock {
namespace {

TEST(Cpu, NoCallOfAStreamAllocates) {
  std::unique_ptr<Device> cpu = open_cpu();
  std::unique_ptr<Stream> stream = cpu->make_stream();
  Buffer table = cpu->allocate(4096), out = cpu->allocate(4096);
  std::vector<std::int64_t> rows(64, 1);
  std::vector<GatherField> fields{
      {table.data(), 64, 16, out.data()},
      {table.data() + 16, 64, 48, out.data() + 1024}};
  std::fill_n(table.data(), 4096, std::byte{1});
  const std::int64_t before = allocations;
  stream->run(Gather{fields, rows});
  stream->copy(out.data(), table.data(), 100);
  stream->step(1);
  Event event = stream->record();
  stream->wait(event);
  stream->synchronize();
  event.wait();
  EXPECT_EQ(allocations, before);
  EXPECT_GT(before, 0);
}

}  // namespace
}  // namespace penstock

#endif

namespace penstock {
namespace {

TEST(Cpu, DoesItsWorkAtOnce) {
  std::unique_ptr<Device> cpu = open_cpu();
  std::unique_ptr<Stream> stream = cpu->make_stream();
  Buffer from = cpu->allocate_pinned(1), to = cpu->allocate(1);
  *from.data() = std::byte{5};
  stream->copy(to.data(), from.data(), 1);
  *from.data() = std::byte{6};
  EXPECT_EQ(*to.data(), std::byte{5});
  EXPECT_TRUE(stream->record().passed());
}

TEST(Cpu, AnEventPassedWhenItWasRecorded) {
  std::unique_ptr<Device> cpu = open_cpu();
  std::unique_ptr<Stream> stream = cpu->make_stream();
  Nanoseconds before = wall_clock().now();
  Event event = stream->record();
  EXPECT_GE(event.time(), before);
  EXPECT_LE(event.time(), wall_clock().now());
  EXPECT_EQ(stream->handle(), nullptr);
}

TEST(AlignedBytes, AreAlignedForVectorCodeAndLargeOnesForHugePages) {
  auto address = [](const Buffer& buffer) {
    return reinterpret_cast<std::uintptr_t>(buffer.data());
  };
  EXPECT_EQ(address(host_buffer(100, "cpu")) % 64, 0u);
  Buffer large = host_buffer((std::size_t{16} << 20) + 1, "cpu");
  EXPECT_EQ(address(large) % (std::size_t{2} << 20), 0u);
  EXPECT_EQ(large.size(), (std::size_t{16} << 20) + 1);
}

}  // namespace
}  // namespace penstock
