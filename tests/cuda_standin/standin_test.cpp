#include "tests/cuda_standin/standin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

// What the stand-in does that a mistake of ours would meet.

namespace cuda_standin {
namespace {

/// For tests that make the mistakes which a sanitizer reports.
bool races_are_reported() {
#ifdef PENSTOCK_SANITIZED_THREAD
  return true;
#else
  return false;
#endif
}

class StandIn : public testing::Test {
 protected:
  StandIn() { start({.most_delay_us = 2000}); }
  ~StandIn() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    start({});
  }

  void* on_device(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
  }
  void* pinned(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
              cudaSuccess);
    return memory;
  }
  cudaStream_t stream() {
    cudaStream_t made = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking),
              cudaSuccess);
    return made;
  }
  cudaEvent_t event() {
    cudaEvent_t made = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&made, 0), cudaSuccess);
    events_.push_back(made);
    return made;
  }

  std::vector<cudaEvent_t> events_;
};

TEST_F(StandIn, StreamsAreOrderedByEventsAlone) {
  if (races_are_reported()) GTEST_SKIP() << "it races on purpose";
  constexpr int kRounds = 100;
  void *there = on_device(4), *from = pinned(4), *to = pinned(4);
  cudaStream_t first = stream(), second = stream();
  cudaEvent_t copied = event();
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    std::memcpy(from, &i, 4);
    cudaMemcpyAsync(there, from, 4, cudaMemcpyDefault, first);
    cudaEventRecord(copied, first);
    cudaStreamWaitEvent(second, copied, 0);
    cudaMemcpyAsync(to, there, 4, cudaMemcpyDefault, second);
    ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    ASSERT_EQ(std::memcmp(to, &i, 4), 0);
  }
  int wrong = 0;
  for (int i = 0; i < kRounds; ++i) {  // without the event
    std::memcpy(from, &i, 4);
    cudaMemcpyAsync(there, from, 4, cudaMemcpyDefault, first);
    cudaMemcpyAsync(to, there, 4, cudaMemcpyDefault, second);
    cudaStreamSynchronize(second);
    wrong += std::memcmp(to, &i, 4) != 0 ? 1 : 0;
    cudaStreamSynchronize(first);
  }
  EXPECT_GT(wrong, 0);
}

TEST_F(StandIn, ACopyReadsPinnedMemoryLaterAndOtherMemoryAtOnce) {
  if (races_are_reported()) GTEST_SKIP() << "it races on purpose";
  void *there = on_device(1 << 20), *from = pinned(1 << 20);
  std::vector<char> pageable(1 << 20, 'a'), seen(1 << 20);
  cudaStream_t one = stream();
  cudaMemcpyAsync(there, pageable.data(), 1 << 20, cudaMemcpyDefault, one);
  std::memset(pageable.data(), 'b', 1 << 20);
  cudaMemcpyAsync(seen.data(), there, 1 << 20, cudaMemcpyDefault, one);
  EXPECT_EQ(seen[77], 'a') << "and a copy to it has ended";
  int later = 0;
  for (int i = 0; i < 50; ++i) {
    std::memset(from, 'c', 1 << 20);
    cudaMemcpyAsync(there, from, 1 << 20, cudaMemcpyDefault, one);
    std::memset(from, 'd', 1 << 20);
    cudaMemcpyAsync(seen.data(), there, 1 << 20, cudaMemcpyDefault, one);
    later += seen[1 << 19] == 'd' ? 1 : 0;
  }
  EXPECT_GT(later, 0);
}

TEST_F(StandIn, AnEventOfAnotherDeviceIsRefused) {
  cudaEvent_t of_first = event();
  cudaSetDevice(1);
  EXPECT_EQ(cudaEventRecord(of_first, stream()),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(StandIn, ACallMakesTheContextOfTheCurrentDevice) {
  EXPECT_FALSE(has_context(0));
  cudaSetDevice(1);
  on_device(8);
  EXPECT_FALSE(has_context(0));
  std::thread([] {  // a thread begins with device 0
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
  })
      .join();
  EXPECT_TRUE(has_context(0));
}

TEST_F(StandIn, MemoryIsLimitedAndCounted) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, std::size_t{1} << 40),
            cudaErrorMemoryAllocation);
  memory = on_device(1000);
  EXPECT_EQ(used(0), 1000u);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(used(0), 0u);
  fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
  cudaFree(on_device(8));
  EXPECT_EQ(cudaMalloc(&memory, 8), cudaErrorMemoryAllocation);
  cudaFree(on_device(8));
}

TEST_F(StandIn, ACaptureIsSpoiltByACallThatDisturbsIt) {
  cudaStream_t one = stream();
  ASSERT_EQ(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal),
            cudaSuccess);
  std::thread([] {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 8), cudaErrorStreamCaptureUnsupported);
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(one, &graph),
            cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace cuda_standin
