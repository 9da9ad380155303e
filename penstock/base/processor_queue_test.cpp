#include "penstock/base/processor_queue.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace penstock {
namespace {

bool is_counted() { return ::access("/proc/self/schedstat", R_OK) == 0; }

/// From now on this thread runs on one processor alone, and so do those that it
/// starts.
void take_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
}

void spin(const std::stop_token& ends) {
  while (!ends.stop_requested()) continue;
}

TEST(ProcessorQueue, CountsTheTimeThatAnotherThreadHasTheProcessor) {
  if (!is_counted()) GTEST_SKIP() << "this system does not count it";
  std::jthread crowded([] {
    take_one_processor();
    const ProcessorQueue queue;
    const Nanoseconds before = queue.now();
    std::jthread other(spin);
    const Nanoseconds end = wall_clock().now() + std::chrono::milliseconds(300);
    while (wall_clock().now() < end) continue;
    EXPECT_GT(queue.now() - before, std::chrono::milliseconds(30));
  });
}

TEST(ProcessorQueue, CountsThreadsThatWereStartedLater) {
  if (!is_counted()) GTEST_SKIP() << "this system does not count it";
  std::jthread crowded([] {
    ProcessorQueue queue;
    take_one_processor();
    std::jthread one(spin), other(spin);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    queue.add_new_threads();
    const Nanoseconds before = queue.now();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_GT(queue.now() - before, std::chrono::milliseconds(100));
  });
}

TEST(ProcessorQueue, AThreadThatSleepsWaitsForNoProcessor) {
  const ProcessorQueue queue;
  const Nanoseconds before = queue.now();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(queue.now() - before, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace penstock
