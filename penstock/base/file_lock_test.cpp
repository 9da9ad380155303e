#include "penstock/base/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace penstock {
namespace {

class FileLockTest : public testing::Test {
 protected:
  ~FileLockTest() override { std::filesystem::remove(path_); }
  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      ("turn-" + std::to_string(::getpid()) + ".lock");
};

TEST_F(FileLockTest, OneHasTheTurnAtATimeAndNoFileStays) {
  {
    FileLock first, second;
    EXPECT_TRUE(first.try_take(path_));
    EXPECT_FALSE(second.try_take(path_));
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  FileLock third;
  EXPECT_TRUE(third.try_take(path_));
  EXPECT_FALSE(third.was_left());
}

TEST_F(FileLockTest, ManyWhoWaitHaveItOneAfterTheOther) {
  std::atomic<int> inside{0}, turns{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        FileLock lock;
        while (!lock.try_take(path_)) std::this_thread::yield();
        EXPECT_EQ(++inside, 1);
        ++turns;
        --inside;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, 400);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(FileLockTest, AKilledProcessGivesItsTurnBack) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    FileLock held;
    char taken = held.try_take(path_) ? 'y' : 'n';
    ::write(ready[1], &taken, 1);
    for (;;) ::pause();
  }
  char taken = 0;
  ASSERT_EQ(::read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  FileLock mine;
  EXPECT_FALSE(mine.try_take(path_));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(std::filesystem::exists(path_));  // and is in nobody's way
  EXPECT_TRUE(mine.try_take(path_));
  EXPECT_TRUE(mine.was_left());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileLockTest, OneThatWaitsIsAskedBeforeEachLook) {
  FileLock mine;
  EXPECT_FALSE(mine.take(path_, [](int) { FAIL() << "nobody has the turn"; }));
  mine.give_back();
  FileLock other;
  ASSERT_TRUE(other.try_take(path_));
  std::vector<int> asked;
  EXPECT_TRUE(mine.take(path_, [&](int times) {
    asked.push_back(times);
    if (times == 2) other.give_back();
  }));
  EXPECT_TRUE(mine.held());
  EXPECT_EQ(asked, (std::vector{0, 1, 2}));
  EXPECT_THROW(other.take(path_, [](int) { throw std::runtime_error("end"); }),
               std::runtime_error);
  EXPECT_FALSE(other.held());
}

TEST_F(FileLockTest, WhereNoFileCanBeMadeNobodyWaits) {
  FileLock first, second;
  EXPECT_TRUE(first.try_take("/proc/no-such-folder/turn.lock"));
  EXPECT_TRUE(second.try_take("/proc/no-such-folder/turn.lock"));
}

}  // namespace
}  // namespace penstock
