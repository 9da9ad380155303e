#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "tests/cuda_standin/standin.h"

// Where the memory of the device `cuda` comes from, and what is copied through
// which memory.

namespace penstock {
namespace {

using cuda_standin::start;
using cuda_standin::used;
using testing::HasSubstr;

constexpr std::size_t kMebi = std::size_t{1} << 20;

/// The pool of another library: it keeps what is given back, as torch's does,
/// and gives it up when it runs short.
class Pool {
 public:
  ~Pool() { trim(); }

  DeviceAllocator allocator() {
    return {
        .allocate = [this](auto bytes, int gpu) { return take(bytes, gpu); },
        .free = [this](auto* memory, int gpu) { give_back(memory, gpu); },
        .unused =
            [this](int) {
              std::lock_guard lock(mutex_);
              return kept_bytes_;
            }};
  }
  std::byte* take(std::size_t bytes, int gpu) {
    std::lock_guard lock(mutex_);
    int current = -1;
    cudaGetDevice(&current);
    EXPECT_EQ(current, gpu) << "a pool allocates on the current device";
    if (++taken_ == fail_at) return nullptr;
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) != cudaSuccess) {
      cudaGetLastError();
      trim();
      if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
      }
    }
    auto* at = static_cast<std::byte*>(memory);
    lent_[at] = bytes;
    return at;
  }
  void give_back(std::byte* memory, int) {
    std::lock_guard lock(mutex_);
    auto found = lent_.find(memory);
    ASSERT_NE(found, lent_.end()) << "it came from the pool";
    kept_bytes_ += found->second;
    kept_.push_back(*found);
    lent_.erase(found);
  }
  std::size_t lent() {
    std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& [memory, size] : lent_) bytes += size;
    return bytes;
  }
  std::size_t taken() const { return taken_; }

  std::size_t fail_at = 0;

 private:
  void trim() {
    for (const auto& [memory, size] : kept_) cudaFree(memory);
    kept_.clear();
    kept_bytes_ = 0;
  }

  std::mutex mutex_;
  std::map<std::byte*, std::size_t> lent_;
  std::vector<std::pair<std::byte*, std::size_t>> kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t taken_ = 0;
};

class CudaMemory : public testing::Test {
 protected:
  CudaMemory() {
    start({});
    words_.add_number();
    words_.options.store_dir = testing::TempDir();
    options_ = {.tail = Tail::pad, .batch_size = 32, .workers = 2};
    options_.batches = 15;
  }
  ~CudaMemory() override { start({}); }

  std::unique_ptr<Device> gpu(const DeviceAllocator& allocator = {},
                              int number = 0) {
    return open_device({.kind = "cuda", .number = number}, allocator);
  }
  std::vector<SeenBatch> expected() const {
    WordsDataset words = words_;
    words.options.cache = "ram";
    auto cpu = open_device({.kind = "cpu"});
    return seen_batches(words.prepare(*cpu), options_, *cpu);
  }

  WordsDataset words_;
  LoaderOptions options_;
};

/// Passes the first tensor on.
std::shared_ptr<const Dataset> mapped(std::shared_ptr<const Dataset> set,
                                      Device& device) {
  const Output& first = set->outputs()[0];
  RowFunction function{
      .layout = layout_of_tensors({{.name = "passed",
                                    .dtype = first.dtype,
                                    .row_shape = first.row_shape}}),
      .fingerprint = "passing",
      .call = [](const RowCall& call) {
        std::memcpy(call.out[0].data, call.in[0].data, call.out[0].bytes());
      }};
  return std::make_shared<FunctionDataset>(std::move(set), std::move(function),
                                           device);
}

TEST_F(CudaMemory, NothingIsCopiedThroughMemoryThatIsNotPinned) {
  for (const char* cache : {"device", "pinned", "ram", "none"})
    for (bool maps : {false, true}) {
      words_.options.cache = cache;
      auto device = gpu();
      std::shared_ptr<const Dataset> set = words_.prepare(*device);
      if (maps) set = mapped(set, *device);
      Loader loader(set, options_, *device);
      std::unique_ptr<Stream> stream = device->make_stream();
      int batches = 0;
      while (loader.next(*stream)) ++batches;
      EXPECT_EQ(batches, 15);
      EXPECT_EQ(cuda_standin::pageable_copies(), 0u)
          << cache << (maps ? ", mapped" : "");
    }
}

TEST_F(CudaMemory, RowsLeaveADeviceThroughPinnedMemory) {
  words_.options.cache = "device";
  auto device = gpu();
  auto set = words_.prepare(*device);
  auto moved = set->off_device(1 << 30, *device).rows;
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(cuda_standin::pageable_copies(), 0u);
  set.reset();
  EXPECT_EQ(seen_batches(moved, options_, *device), expected());
}

TEST_F(CudaMemory, ComesFromTheAllocatorThatIsHandedIn) {
  const std::vector<SeenBatch> right = expected();
  for (const char* cache : {"device", "pinned", "ram", "none"})
    for (int number : {0, 1}) {
      Pool pool;
      words_.options.cache = cache;
      auto device = gpu(pool.allocator(), number);
      {
        auto set = words_.prepare(*device);
        Loader loader(set, options_, *device);
        EXPECT_GT(pool.lent(), 0u);
        EXPECT_GE(used(number), pool.lent());
        EXPECT_EQ(used(1 - number), 0u);
      }
      EXPECT_EQ(pool.lent(), 0u) << "all of it was given back";
      EXPECT_EQ(seen_batches(words_.prepare(*device), options_, *device),
                right);
    }
  EXPECT_EQ(used(0) + used(1), 0u);
}

TEST_F(CudaMemory, ThatThePoolKeepsUnusedIsNotMissing) {
  Pool pool;  // of a machine with 512 MiB
  pool.give_back(pool.take(400 * kMebi, 0), 0);
  ASSERT_EQ(used(0), 400 * kMebi);
  {
    auto device = gpu();
    EXPECT_LT(device->memory().free, 200 * kMebi);
    EXPECT_THROW(device->allocate(200 * kMebi), Error);
  }
  auto device = gpu(pool.allocator());
  EXPECT_EQ(device->memory().free, 512 * kMebi);
  EXPECT_EQ(device->allocate(200 * kMebi).size(), 200 * kMebi);
}

TEST_F(CudaMemory, BeyondThePoolIsOutOfMemoryWithNumbers) {
  Pool pool;
  auto device = gpu(pool.allocator());
  try {
    device->allocate(600 * kMebi);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_EQ(error.parts().code, "device.out_of_memory");
    EXPECT_THAT(error.parts().why, HasSubstr("600 MiB"));
    EXPECT_THAT(error.parts().why, HasSubstr("512 MiB"));
  }
  EXPECT_EQ(pool.lent(), 0u);
}

TEST_F(CudaMemory, APoolThatFailsAtAnyCallLeavesNothingBehind) {
  words_.options.cache = "device";
  std::size_t calls = 0;
  for (std::size_t k = 0; k <= calls; ++k) {  // at first none fails
    Pool pool;
    pool.fail_at = k;
    auto device = gpu(pool.allocator());
    try {
      seen_batches(words_.prepare(*device), options_, *device);
      EXPECT_EQ(k, 0u);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
    }
    calls = std::max(calls, pool.taken());
    EXPECT_EQ(pool.lent(), 0u) << k;
  }
  EXPECT_GT(calls, 2u);
}

TEST_F(CudaMemory, WhatAnAllocatorThrowsReachesTheCaller) {
  auto device = gpu({.allocate = [](std::size_t, int) -> std::byte* {
                       throw Error(ErrorKind::device, {.code = "test.pool"});
                     },
                     .free = [](std::byte*, int) {}});
  try {
    device->allocate(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "test.pool");
  }
}

}  // namespace
}  // namespace penstock
