#include <cuda_runtime_api.h>

#include <thread>

#include "penstock/base/error.h"
#include "tests/conformance/device_suite.h"
#include "tests/conformance/operation_suite.h"

namespace penstock::conformance {
namespace {

std::unique_ptr<Device> open_cuda() { return open_device({.kind = "cuda"}); }

/// Why this machine cannot run these tests; empty when it can.
std::string missing_gpu() {
  static const std::string why = []() -> std::string {
    try {
      open_cuda();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }();
  return why;
}

const auto kCases = testing::Values(
    DeviceCase{.name = "cuda", .open = open_cuda, .missing = missing_gpu});
INSTANTIATE_TEST_SUITE_P(Gpu, DeviceSuite, kCases, device_case_name);
INSTANTIATE_TEST_SUITE_P(Gpu, OperationSuite, kCases, device_case_name);

/// What cuda has beyond other devices.
class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = missing_gpu(); !why.empty()) {
      no_device(why);
      return;
    }
    device_ = open_cuda();
    stream_ = device_->make_stream();
  }
  Buffer pinned(const ByteVector& bytes) {
    Buffer buffer = device_->allocate_pinned(bytes.size());
    std::ranges::copy(bytes, buffer.data());
    return buffer;
  }
  Buffer upload(const ByteVector& bytes) {
    Buffer host = pinned(bytes), there = device_->allocate(bytes.size());
    stream_->copy(there.data(), host.data(), bytes.size());
    stream_->synchronize();
    return there;
  }
  ByteVector download(const Buffer& from) {
    Buffer host = device_->allocate_pinned(from.size());
    stream_->copy(host.data(), from.data(), from.size());
    stream_->synchronize();
    return bytes_of(host);
  }
  /// `rows` of a table of 1000 random rows of one field, both ways.
  void expect_gathered(std::size_t row_bytes, std::size_t count) {
    ByteVector table = random_bytes(1000 * row_bytes, row_bytes);
    Random random(count, 0, 0, 0);
    std::vector<std::int64_t> rows(count);
    for (std::int64_t& row : rows)
      row = static_cast<std::int64_t>(random.below(1001)) - 1;
    ByteVector right(count * row_bytes);
    std::vector<GatherField> fields{
        {table.data(), row_bytes, row_bytes, right.data()}};
    run_on_host(Gather{fields, rows});
    Buffer there = upload(table), out = device_->allocate(right.size());
    fields = {{there.data(), row_bytes, row_bytes, out.data()}};
    stream_->run(Gather{fields, rows});
    EXPECT_EQ(download(out), right) << count << " rows of " << row_bytes;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(Gpu, SaysWhichOneItIs) {
  EXPECT_EQ(device_->memory_kind(), MemoryKind::cuda);
  EXPECT_EQ(device_->number(), 0);
  EXPECT_THAT(device_->name(), testing::StartsWith("cuda:0 "));
  EXPECT_THAT(device_->pci_bus_id(), testing::HasSubstr(":"));
  EXPECT_EQ(device_->allocate_pinned(1).kind(), MemoryKind::cuda_host);
}

TEST_F(Gpu, GathersMoreRowsThanOneLaunchTakes) {
  expect_gathered(64, 40'000);
  expect_gathered(4, 100'000);
}

TEST_F(Gpu, GathersRowsOfEveryAlignmentAndOfManyLengths) {
  for (std::size_t bytes :
       {1u, 2u, 4u, 6u, 8u, 12u, 16u, 33u, 296u, 1024u, 4096u, 100'000u})
    expect_gathered(bytes, 300);
}

TEST_F(Gpu, QueuesManyGathersWithoutWaiting) {
  ByteVector table = random_bytes(1000 * 32, 5);
  Buffer there = upload(table);
  std::vector<Buffer> outs;
  std::vector<ByteVector> right;
  for (std::size_t i = 0; i < 300; ++i) {
    std::vector<std::int64_t> rows(999, static_cast<std::int64_t>(i));
    outs.push_back(device_->allocate(999 * 32));
    std::vector<GatherField> fields{{there.data(), 32, 32, outs.back().data()}};
    stream_->run(Gather{fields, rows});
    right.emplace_back(999 * 32);
    fields = {{table.data(), 32, 32, right.back().data()}};
    run_on_host(Gather{fields, rows});
  }
  for (std::size_t i = 0; i < 300; ++i) ASSERT_EQ(download(outs[i]), right[i]);
}

TEST_F(Gpu, GathersFromATablePerFieldMoreThanALaunchTakes) {
  constexpr std::size_t kFields = 70, kRows = 500;
  Random random(3, 0, 0, 0);
  std::vector<std::int64_t> rows(kRows);
  for (std::int64_t& row : rows)
    row = static_cast<std::int64_t>(random.below(1001)) - 1;
  std::vector<Buffer> tables, outs;
  std::vector<ByteVector> right;
  std::vector<GatherField> here, there;
  for (std::size_t f = 0; f < kFields; ++f) {
    std::size_t bytes = 1 + random.below(100);
    ByteVector table = random_bytes(1000 * bytes, f);
    tables.push_back(upload(table));
    outs.push_back(device_->allocate(kRows * bytes));
    right.emplace_back(kRows * bytes);
    there.push_back({tables[f].data(), bytes, bytes, outs[f].data()});
    here = {{table.data(), bytes, bytes, right[f].data()}};
    run_on_host(Gather{here, rows});
  }
  stream_->run(Gather{there, rows});
  for (std::size_t f = 0; f < kFields; ++f)
    ASSERT_EQ(download(outs[f]), right[f]) << f;
}

TEST_F(Gpu, ABorrowedStreamTakesItsTurnInTheStreamItIs) {
  ByteVector bytes = random_bytes(1 << 20, 9);
  Buffer from = pinned(bytes), to = pinned(ByteVector(bytes.size()));
  Buffer there = device_->allocate(bytes.size());
  std::unique_ptr<Stream> borrowed = device_->borrow_stream(stream_->handle());
  EXPECT_EQ(borrowed->handle(), stream_->handle());
  stream_->copy(there.data(), from.data(), bytes.size());
  borrowed->copy(to.data(), there.data(), bytes.size());
  borrowed.reset();
  stream_->synchronize();
  EXPECT_EQ(bytes_of(to), bytes);
}

TEST_F(Gpu, TheDefaultStreamCanBeBorrowed) {
  std::unique_ptr<Stream> borrowed = device_->borrow_stream(nullptr);
  EXPECT_EQ(borrowed->handle(), nullptr);
  EXPECT_NE(stream_->handle(), nullptr);
}

TEST_F(Gpu, AnEventPassesBetweenItsRecordingAndItsWait) {
  Buffer there = device_->allocate(64 << 20);
  Buffer host = device_->allocate_pinned(64 << 20);
  for (int i = 0; i < 10; ++i) {
    Nanoseconds before = device_->clock().now();
    stream_->copy(there.data(), host.data(), host.size());
    Event event = stream_->record();
    event.wait();
    Nanoseconds after = device_->clock().now();
    // Events are timed against one whose own time was asked of the host, which
    // another program may interrupt in between.
    constexpr Nanoseconds kExact = std::chrono::microseconds(100);
    EXPECT_GE(event.time(), before - kExact);
    EXPECT_LE(event.time(), after + kExact);
    EXPECT_EQ(event.time(), event.time());
  }
}

TEST_F(Gpu, WorksWhileAnotherThreadCapturesAGraph) {
  cudaStream_t captured = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking),
            cudaSuccess);
  Buffer memory = device_->allocate(64);
  ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal),
            cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory.data(), 0, memory.size(), captured),
            cudaSuccess);
  std::thread([&] {
    Buffer more = upload(random_bytes(1000, 1));
    Event event = stream_->record();
    while (!event.passed()) std::this_thread::yield();
    EXPECT_GT(device_->memory().free, 0u);
    EXPECT_EQ(download(more), random_bytes(1000, 1));
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 1u);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(captured);
}

TEST_F(Gpu, AnUntimedEventTellsNoTime) {
  Event event = stream_->record_untimed();
  event.wait();
  EXPECT_TRUE(event.passed());
  EXPECT_THROW(event.time(), Error);
}

TEST_F(Gpu, PinnedMemoryBeyondTheHostsIsOutOfMemory) {
  try {
    device_->allocate_pinned(std::size_t{1} << 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_THAT(error.parts().where, testing::HasSubstr("pinned"));
  }
}

}  // namespace
}  // namespace penstock::conformance
