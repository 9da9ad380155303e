#include "penstock/exec/stage.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "penstock/base/error.h"
#include "penstock/exec/meter.h"
#include "penstock/exec/queue.h"

namespace penstock {
namespace {

TEST(TryThreads, LeavesNoneBehind) {
  for (int threads : {0, 1, 8}) try_threads("library", threads);
}

class StageWorkers : public testing::TestWithParam<int> {};

TEST_P(StageWorkers, RunsItsBodyOncePerWorkerAndEndsOnce) {
  std::atomic<int> ran{0}, ended{0};
  Stage stage({.name = "work",
               .workers = GetParam(),
               .body = [&](int) { ++ran; },
               .last = [&] { ++ended; }});
  if (GetParam() == 0) stage.run_inline();
  stage.join();
  EXPECT_EQ(ran, std::max(1, GetParam()));
  EXPECT_EQ(ended, 1);
}

TEST_P(StageWorkers, TellsOfAFailureUnderItsName) {
  std::atomic<int> heard{0};
  Stage stage({.name = "decode",
               .workers = GetParam(),
               .body = [](int) { throw std::runtime_error("odd"); },
               .failed =
                   [&](std::exception_ptr error) {
                     try {
                       std::rethrow_exception(error);
                     } catch (const Error& known) {
                       EXPECT_EQ(known.kind(), ErrorKind::internal);
                       EXPECT_TRUE(known.parts().what.starts_with("decode: "));
                       EXPECT_EQ(known.parts().why, "odd");
                       ++heard;
                     }
                   }});
  if (GetParam() == 0) stage.run_inline();
  stage.join();
  EXPECT_EQ(heard, std::max(1, GetParam()));
}

TEST_P(StageWorkers, TellsOfWhatIsNotAnExceptionToo) {
  std::atomic<int> heard{0};
  Stage stage({.name = "decode",
               .workers = GetParam(),
               .body = [](int) { throw 7; },
               .failed =
                   [&](std::exception_ptr error) {
                     try {
                       std::rethrow_exception(error);
                     } catch (const Error& known) {
                       EXPECT_EQ(known.kind(), ErrorKind::internal);
                       EXPECT_EQ(known.parts().why,
                                 "a value of type int was thrown, which is not "
                                 "a std::exception");
                       ++heard;
                     }
                   }});
  if (GetParam() == 0) stage.run_inline();
  stage.join();
  EXPECT_EQ(heard, std::max(1, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Workers, StageWorkers, testing::Values(0, 1, 2, 8));

TEST(Stage, NamesItsThreadsHoweverManyThereAre) {
  std::atomic<bool> all_started{false};
  std::string last;
  auto body = [&](int worker) {
    all_started.wait(false);
    char name[16] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof(name));
    if (worker == 100) last = name;
  };
  Stage stage({.name = "twelve_chars", .workers = 101, .body = body});
  all_started = true;
  all_started.notify_all();
  stage.join();
  EXPECT_EQ(last, "twelve_char-100");
}

TEST(Stage, KnowsThatAFailedAllocationIsOutOfMemory) {
  const std::exception_ptr both[] = {
      std::make_exception_ptr(std::bad_alloc()),
      std::make_exception_ptr(std::system_error(
          std::make_error_code(std::errc::not_enough_memory)))};
  for (const std::exception_ptr& unnamed : both) {
    try {
      std::rethrow_exception(named_error(unnamed, "prepare"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
      EXPECT_TRUE(error.parts().what.starts_with("prepare: "));
      EXPECT_FALSE(error.parts().why.empty());
    }
  }
}

TEST(StageMeter, AddsUpWhatItsWorkersSay) {
  StageMeter meter("read", 2);
  meter.add_items(3, 100);
  meter.add_items(4, 50);
  meter.add_blocked_get(Nanoseconds(5));
  StageNumbers numbers = meter.numbers();
  EXPECT_EQ(numbers.items, 7);
  EXPECT_EQ(numbers.bytes, 150);
  EXPECT_EQ(numbers.blocked_get, Nanoseconds(5));
  EXPECT_EQ(numbers.workers, 2);
}

// A limit on threads does not bind root, so root becomes somebody else first.
// Sanitizers start threads of their own.
#ifndef PENSTOCK_SANITIZED
TEST(StageDeathTest, ARefusedThreadEndsThoseThatStarted) {
  auto start_too_many = [] {
    constexpr uid_t kSomebody = 54321;
    if (::geteuid() == 0 && ::setresuid(kSomebody, kSomebody, kSomebody) != 0)
      std::_Exit(6);
    rlimit limit{.rlim_cur = 20, .rlim_max = 20};
    ::setrlimit(RLIMIT_NPROC, &limit);
    Queue<int> never(1);
    try {
      Stage stage({.name = "work",
                   .workers = 4096,
                   .body = [&](int) { never.pop(); },
                   .failed =
                       [&](std::exception_ptr error) {
                         never.fail(std::move(error));
                       }});
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(error.kind() == ErrorKind::request ? 7 : 8);
    }
    std::_Exit(9);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(7),
              "work: cannot start thread [0-9]+ of 4096");
}
#endif

}  // namespace
}  // namespace penstock
