#include "penstock/base/temporary.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/file.h"

namespace penstock {
namespace {

class TemporaryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-temporary-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.insert(entry.path().filename());
    return names;
  }
  void leave_file(const std::string& name) const {
    real_files().append_line(folder_ / name, "half of i");
  }
  void leave_link(const std::string& name, std::time_t seconds_ago) const {
    std::filesystem::create_symlink("gone", folder_ / name);
    timespec then{.tv_sec = std::time(nullptr) - seconds_ago, .tv_nsec = 0};
    timespec times[] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / name).c_str(), times,
                          AT_SYMLINK_NOFOLLOW),
              0);
  }
  /// What `work` threw on any of the threads it ran on.
  template <class Work>
  static int failures_of(Work work) {
    std::atomic<int> failures{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          try {
            for (int i = 0; i < 50; ++i) work();
          } catch (const std::exception&) {
            ++failures;
          }
        });
    }
    return failures;
  }

  std::filesystem::path folder_;
};

TEST_F(TemporaryTest, IsGoneWhenItDidNotBecomeTheFile) {
  {
    TemporaryFile file(folder_ / "a");
    EXPECT_TRUE(file.open());
    EXPECT_EQ(names().size(), 1u);
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(TemporaryTest, TwoOfOneFileHaveDifferentNames) {
  TemporaryFile first(folder_ / "a"), second(folder_ / "a");
  EXPECT_EQ(names().size(), 2u);
  EXPECT_TRUE(first.become(folder_ / "a"));
  EXPECT_TRUE(second.become(folder_ / "a"));
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(TemporaryTest, InAFolderThatIsNotThereItSaysWhy) {
  TemporaryFile file(folder_ / "none" / "a");
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(file.open());
}

TEST_F(TemporaryTest, WhatADeadProcessOfTheSameNumberLeftIsNotInTheWay) {
  for (int i = 0; i < 100; ++i)
    leave_file("a.tmp." + std::to_string(::getpid()) + "." + std::to_string(i));
  real_files().write_atomic(folder_ / "a", "whole");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(TemporaryTest, TheNextWriteRemovesWhatAKilledWriterLeft) {
  auto killed = [&] {
    TemporaryFile file(folder_ / "a");
    ::kill(::getpid(), SIGKILL);
  };
  EXPECT_EXIT(killed(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(names().size(), 1u);
  real_files().write_atomic(folder_ / "a", "whole");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(TemporaryTest, ALivingWriterKeepsItsFile) {
  TemporaryFile living(folder_ / "a");
  ASSERT_EQ(::write(living.number(), "later", 5), 5);
  real_files().write_atomic(folder_ / "a", "sooner");
  EXPECT_TRUE(living.become(folder_ / "a"));
  EXPECT_EQ(real_files().read(folder_ / "a"), "later");
}

TEST_F(TemporaryTest, OtherFilesStay) {
  std::set<std::string> others = {"a.tmp", "a.txt", "b", "b.tmp.1.0",
                                  "ba.tmp.1"};
  for (const std::string& name : others) leave_file(name);
  std::filesystem::create_directory(folder_ / "a.tmp.folder");
  real_files().write_atomic(folder_ / "a", "whole");
  others.insert({"a", "a.tmp.folder"});
  EXPECT_EQ(names(), others);
}

TEST_F(TemporaryTest, AFreshLinkStaysAndAnOldOneGoes) {
  leave_link("latest.tmp.old", 120);
  leave_link("latest.tmp.new", 0);
  real_files().link_to("x", folder_ / "latest");
  EXPECT_EQ(names(), (std::set<std::string>{"latest", "latest.tmp.new"}));
}

TEST_F(TemporaryTest, AFailedLinkLeavesNothing) {
  std::filesystem::create_directory(folder_ / "latest");
  EXPECT_FALSE(make_link("x", folder_ / "latest"));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_EQ(names(), std::set<std::string>{"latest"});
}

TEST_F(TemporaryTest, ManyWritersOfOneFileDoNotDisturbEachOther) {
  EXPECT_EQ(
      failures_of([&] { real_files().write_atomic(folder_ / "a", "whole"); }),
      0);
  EXPECT_EQ(names(), std::set<std::string>{"a"});
  EXPECT_EQ(failures_of([&] { real_files().link_to("a", folder_ / "l"); }), 0);
  EXPECT_EQ(names(), (std::set<std::string>{"a", "l"}));
}

}  // namespace
}  // namespace penstock
