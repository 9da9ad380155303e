#include "penstock/base/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "penstock/base/log_copy.h"

namespace penstock {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { set_log_writer({}); }
  std::string written_;
};

TEST_F(LogTest, AWriterMayThrowWhateverItLikes) {
  set_log_writer([](LogLevel, std::string_view) { throw 7; });
  log(LogLevel::error, "lost");
  set_log_writer(
      [](LogLevel, std::string_view) { throw std::runtime_error("no room"); });
  log(LogLevel::error, "lost too");
  set_log_writer([this](LogLevel, std::string_view text) { written_ = text; });
  log(LogLevel::error, "heard again");
  EXPECT_EQ(written_, "heard again");
}

TEST_F(LogTest, ACopyHasALevelOfItsOwn) {
  set_log_writer([this](LogLevel, std::string_view text) { written_ += text; });
  std::string copied;
  {
    const LogCopy copy(LogLevel::info, [&](LogLevel, std::string_view text) {
      copied += text;
    });
    log(LogLevel::debug, "a");
    log(LogLevel::info, "b");
    log(LogLevel::error, "c");
  }
  log(LogLevel::error, "d");
  EXPECT_EQ(copied, "bc");
  EXPECT_EQ(written_, "cd");
}

TEST_F(LogTest, RepeatsCanBeDropped) {
  set_log_writer([this](LogLevel, std::string_view text) { written_ += text; });
  for (int time = 0; time < 2; ++time) {
    const DropRepeats only_once;
    for (const char* text : {"a", "b", "a", "a"}) log(LogLevel::warning, text);
  }
  log(LogLevel::warning, "c");
  log(LogLevel::warning, "c");
  EXPECT_EQ(written_, "ababcc");
}

TEST_F(LogTest, SaysWhatTheExceptionAtHandSays) {
  set_log_writer([this](LogLevel, std::string_view text) { written_ = text; });
  try {
    throw std::runtime_error("no room");
  } catch (...) {
    log_exception(LogLevel::error, "saving");
  }
  EXPECT_EQ(written_, "saving: no room");
  try {
    throw 7;
  } catch (...) {
    log_exception(LogLevel::error, "saving");
  }
  EXPECT_EQ(written_, "saving: an exception that is not a std::exception");
}

}  // namespace
}  // namespace penstock
