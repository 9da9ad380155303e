#include "penstock/run/rank_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "penstock/base/base.h"
#include "penstock/base/fake/test_folder.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RankLog, HoldsWhatTheLogAndTheListenerGet) {
  TestFolder folder;
  std::string heard;
  {
    RankLog rank(1);
    log(LogLevel::info, "before there is a folder");
    TrainListener listener =
        rank.logged({.note = [&](const std::string& line) { heard += line; }});
    rank.open(folder.path("run"));
    log(LogLevel::debug, "too much");
    listener.note("rows are ready");
    try {
      throw std::runtime_error("the disk is gone");
    } catch (...) {
      rank.add_failure();
    }
  }
  log(LogLevel::info, "after it");
  const std::string text = real_files().read(folder.path("run/ranks/1.log"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "^20[0-9-]+T[0-9:.]+Z info: before there is a "
                        "folder\n.*Z rows are ready\n.*Z error: the disk is "
                        "gone\n$"));
  EXPECT_THAT(text, Not(HasSubstr("too much")));
  EXPECT_THAT(text, Not(HasSubstr("after it")));
  EXPECT_EQ(heard, "") << "rank 1 tells its log alone";
}

TEST(RankLog, RankZeroIsHeardToo) {
  std::string heard;
  RankLog rank(0);
  rank.logged({.note = [&](const std::string& line) { heard += line; }})
      .note("rows are ready");
  EXPECT_EQ(heard, "rows are ready");
}

TEST(RankLog, AFolderThatCannotBeMadeEndsNothing) {
  TestFolder folder;
  folder.write("file", "x");
  RankLog rank(0);
  rank.open(folder.path("file"));
  rank.add("lost");
}

}  // namespace
}  // namespace penstock
