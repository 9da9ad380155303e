#include "penstock/demo/device_check.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace penstock {
namespace {

std::vector<std::string> column(const Json& list, const char* key) {
  std::vector<std::string> all;
  for (const Json& entry : list.array())
    all.push_back(entry.find(key)->string());
  return all;
}

TEST(DeviceTests, OfTheHostPassOrAreNotThere) {
  const Json list = device_tests("cpu");
  EXPECT_EQ(column(list, "test"),
            (std::vector<std::string>{"basics", "memory", "network",
                                      "mixed_precision", "libraries"}));
  const std::vector<std::string> states = column(list, "state");
  EXPECT_EQ(states[0], "ok") << list.dump();
  EXPECT_EQ(states[1], "ok") << list.dump();
  for (std::size_t i = 2; i < 5; ++i) {
    EXPECT_NE(states[i], "failed") << list.dump();
    EXPECT_TRUE(states[i] != "n/a" || !list.array()[i].find("next")->is_null());
  }
}

TEST(DeviceTests, WithoutAGpuAreNotAFailureAndSayWhatToDo) {
  const Json list = device_tests("cuda");
  for (const Json& entry : list.array())
    EXPECT_TRUE(entry.find("state")->string() != "n/a" ||
                !entry.find("next")->is_null())
        << entry.dump();
}

TEST(QuickTrain, EndsAtTheFirstCheckpointThatDoesNotHold) {
  const Json list = quick_train("cpu");
  const std::vector<std::string> states = column(list, "state");
  const std::vector<std::string> names = column(list, "test");
  const std::vector<std::string> all = {"device",  "settings", "model",
                                        "forward", "backward", "ten_steps"};
  ASSERT_FALSE(names.empty());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(names[i], all[i]);
    EXPECT_EQ(states[i] == "ok", i + 1 < names.size() || names.size() == 6)
        << list.dump();
  }
  for (const Json& entry : list.array()) {
    EXPECT_GE(entry.find("seconds")->number(), 0);
    EXPECT_GT(entry.find("resident_bytes")->integer(), 0);
  }
}

}  // namespace
}  // namespace penstock
