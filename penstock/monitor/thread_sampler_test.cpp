#include "penstock/monitor/thread_sampler.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using namespace std::chrono_literals;

bool never(int) { return false; }
bool always(int) { return true; }

std::optional<ThreadDoes> in_call(long call) {
  return what_line_says(std::to_string(call) + " 0x3 0x7f 0x0", never);
}

TEST(WhatLineSays, NamesWhatAThreadIsIn) {
  EXPECT_EQ(what_line_says("running", never), ThreadDoes::running);
  EXPECT_EQ(what_line_says("-1 0x7f 0x55", never), ThreadDoes::in_file);
  EXPECT_EQ(in_call(SYS_futex), ThreadDoes::in_lock);
  EXPECT_EQ(in_call(SYS_flock), ThreadDoes::in_lock);
  EXPECT_EQ(in_call(SYS_clock_nanosleep), ThreadDoes::asleep);
  EXPECT_EQ(in_call(SYS_pread64), ThreadDoes::in_file);
  EXPECT_EQ(in_call(SYS_ppoll), ThreadDoes::in_network);
  EXPECT_EQ(in_call(SYS_getpid), ThreadDoes::other);
  EXPECT_EQ(what_line_says(std::to_string(SYS_read) + " 0x3", always),
            ThreadDoes::in_network);
  EXPECT_EQ(what_line_says("", never), std::nullopt);
  EXPECT_EQ(what_line_says("what?", never), std::nullopt);
}

TEST(WhatLineSays, TellsLocksOfOneProcessFromThoseThatAnotherMayHold) {
  const std::string futex = std::to_string(SYS_futex);
  EXPECT_EQ(what_line_says(futex + " 0x7f973d2a2000 0x109 0x0", never),
            ThreadDoes::in_lock);
  EXPECT_EQ(what_line_says(futex + " 0x5605bd2d3540 0x189 0x0", never),
            ThreadDoes::in_own_lock)
      << "FUTEX_PRIVATE_FLAG";
  for (const char* cut_off : {"", " ", " 0x", " 0x7f", " 0x7f 0x"})
    EXPECT_EQ(what_line_says(futex + cut_off, never), ThreadDoes::in_lock)
        << "nothing says it is private";
}

TEST(WhatThreadDoes, IsUnknownWhereTheKernelDoesNotTell) {
  EXPECT_EQ(what_thread_does(1, "/nowhere"), std::nullopt);
}

TEST(ThreadSampler, SeesWhatAThreadWaitsFor) {
  if (!what_thread_does(::gettid())) GTEST_SKIP() << "the kernel tells nothing";
  ThreadSampler sampler(1ms);
  sampler.begin();
  std::this_thread::sleep_for(50ms);
  sampler.end();
  ThreadSightings slept = sampler.take();
  EXPECT_GT(slept.asleep, 5);
  EXPECT_EQ(slept.in_locks() + slept.in_network, 0);

  ThreadSampler another(1ms);
  std::mutex held;
  held.lock();
  std::thread other([&] {
    another.begin();
    held.lock();
    another.end();
    held.unlock();
  });
  std::this_thread::sleep_for(50ms);
  held.unlock();
  other.join();
  ThreadSightings waited = another.take();
  EXPECT_GT(waited.in_own_lock, 5);
  EXPECT_GT(waited.in_own_lock, waited.asleep + waited.running);
}

TEST(ThreadSampler, LooksAtNobodyBetweenTwoPiecesOfWork) {
  ThreadSampler sampler(1ms);
  sampler.begin();
  sampler.end();
  (void)sampler.take();
  std::this_thread::sleep_for(20ms);
  const ThreadSightings seen = sampler.take();
  EXPECT_EQ(seen.looks, 0);
}

TEST(ThreadSampler, LooksTheSeldomerTheMoreItHasSeen) {
  ThreadSampler sampler(100us);
  sampler.begin();
  std::this_thread::sleep_for(1s);
  sampler.end();
  const ThreadSightings seen = sampler.take();
  // 40 in 4 ms, 160 in 160 ms, and 418 in what is left.
  EXPECT_LT(seen.looks, 700);
  EXPECT_GT(seen.total(), 4 * seen.looks) << "in periods of 0.1 ms";
  EXPECT_LT(seen.total(), 10'500);
}

// Such as files that a function opens when it is first called.
TEST(ThreadSampler, WhatIsOnlyAtTheStartCountsForAsLongAsItTook) {
  if (!what_thread_does(::gettid())) GTEST_SKIP() << "the kernel tells nothing";
  ThreadSampler sampler(1ms);
  std::mutex held;
  held.lock();
  std::thread working([&] {
    sampler.begin();
    held.lock();
    std::this_thread::sleep_for(600ms);
    sampler.end();
    held.unlock();
  });
  std::this_thread::sleep_for(60ms);
  held.unlock();
  working.join();
  const ThreadSightings seen = sampler.take();
  EXPECT_GT(seen.in_own_lock, 5);
  EXPECT_LT(4 * seen.in_own_lock, seen.asleep);
}

TEST(ThreadSampler, SeesNothingInAForkAndIsDestroyedWithoutWaiting) {
  auto sampler = std::make_unique<ThreadSampler>(1ms);
  sampler->begin();
  std::this_thread::sleep_for(50ms);  // until its thread waits
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    sampler->begin();
    sampler->end();
    if (sampler->take().looks != 0) ::_exit(1);
    sampler.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  sampler->end();
}

TEST(ThreadSampler, TakesAnyNumberOfThreads) {
  for (int threads : {0, 1, 2, 8}) {
    ThreadSampler sampler(1ms);
    std::vector<std::jthread> working;
    for (int i = 0; i < threads; ++i)
      working.emplace_back([&] {
        for (int item = 0; item < 100; ++item) {
          sampler.begin();
          sampler.end();
        }
      });
  }
}

}  // namespace
}  // namespace penstock
