#include "penstock/cli/interpreter_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace penstock {
namespace {

using testing::HasSubstr;

const char* const kSpinning = R"([
  {"pid": 1, "thread_name": "spinner", "active": true, "owns_gil": true},
  {"pid": 1, "thread_name": "MainThread", "active": false, "owns_gil": false}])";
const char* const kIdle = R"([
  {"pid": 1, "thread_name": "MainThread", "active": false, "owns_gil": false}])";

TEST(InterpreterLocks, AreCountedByWhoHoldsThem) {
  InterpreterLock lock(1);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(lock.count(kSpinning));
  EXPECT_TRUE(lock.count(kIdle));
  const Json json = lock.json();
  EXPECT_EQ(json.find("looks")->integer(), 10);
  EXPECT_DOUBLE_EQ(json.find("held")->number(), 0.9);
  EXPECT_EQ(json.find("holders")->array()[0].find("thread")->string(),
            "spinner");
  EXPECT_THAT(lock.text(), HasSubstr("held in 90 % of 10 samples (most by "
                                     "spinner, 90 %): more Python"));
  EXPECT_TRUE(lock.limits());
}

TEST(InterpreterLocks, ThatAreFreeAreNotTheLimit) {
  InterpreterLock lock(1);
  EXPECT_TRUE(lock.count(kSpinning));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lock.count(kIdle));
  EXPECT_THAT(lock.text(), HasSubstr("not the bottleneck"));
  EXPECT_FALSE(lock.limits());
}

TEST(InterpreterLocks, WhatIsNoDumpCountsNothing) {
  InterpreterLock lock(1);
  for (const char* wrong : {"", "Error: no such process", "{}", "[1, ", "5"})
    EXPECT_FALSE(lock.count(wrong)) << wrong;
  EXPECT_TRUE(lock.count("[1, null, {}]"));  // no thread holds it
  EXPECT_EQ(lock.json().find("held")->number(), 0);
}

TEST(InterpreterLocks, WithoutPySpyAreUnknownAndSayWhy) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  InterpreterLock lock(1);
  lock.look();
  lock.look();
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(lock.text(), HasSubstr("n/a, py-spy is not installed"));
  EXPECT_TRUE(lock.json().find("held")->is_null());
}

}  // namespace
}  // namespace penstock
