#include "penstock/session/memory_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/tensor_limit.h"

namespace penstock {
namespace {

std::vector<std::int64_t> column(const Json& json, const char* name) {
  std::vector<std::int64_t> numbers;
  for (const Json& one : json.find(name)->array())
    numbers.push_back(one.integer());
  return numbers;
}

TEST(MemoryAccount, HasASampleForEachStepOfAShortRun) {
  MemoryAccount account;
  EXPECT_TRUE(account.json().is_null());
  account.add(0.5, {.parameters = 1, .activations = 9}, {.look_ahead = 4});
  account.add(1.5, {.parameters = 1, .activations = 7}, {.cache = 3});
  const Json json = account.json();
  EXPECT_EQ(json.find("seconds")->array()[1].number(), 1.5);
  EXPECT_EQ(column(json, "parameters"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(column(json, "activations"), (std::vector<std::int64_t>{9, 7}));
  EXPECT_EQ(column(json, "cache"), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(column(json, "look_ahead"), (std::vector<std::int64_t>{4, 0}));
}

TEST(MemoryAccount, ALongRunIsBoundedAndKeepsItsPeaks) {
  MemoryAccount account;
  constexpr std::int64_t kSteps = 100000, kHighest = 77777;
  for (std::int64_t step = 0; step < kSteps; ++step)
    account.add(static_cast<double>(step),
                {.activations = step == kHighest ? 1000 : 10}, {});
  const Json json = account.json();
  const std::vector<std::int64_t> peaks = column(json, "activations");
  EXPECT_LE(peaks.size(), MemoryAccount::kMost);
  EXPECT_GE(peaks.size(), MemoryAccount::kMost / 2);
  const auto highest = std::ranges::find(peaks, 1000);
  ASSERT_NE(highest, peaks.end());
  EXPECT_EQ(std::ranges::count(peaks, 1000), 1);
  const Json::Array& ends = json.find("seconds")->array();
  const auto at = static_cast<std::size_t>(highest - peaks.begin());
  EXPECT_GE(ends[at].number(), static_cast<double>(kHighest));
  EXPECT_LT(ends[at - 1].number(), static_cast<double>(kHighest));
  EXPECT_EQ(ends.back().number(), static_cast<double>(kSteps - 1));
}

TEST(DataMemory, OfTheHostIsWhatItGaveForBatches) {
  const auto cpu = open_device({.kind = "cpu"});
  const std::int64_t before = data_memory(*cpu).bytes.look_ahead;
  {
    const Buffer batch = cpu->allocate(1000);
    const Buffer pinned = cpu->allocate_pinned(500);
    EXPECT_EQ(data_memory(*cpu).bytes.look_ahead, before + 1000);
  }
  EXPECT_EQ(data_memory(*cpu).bytes.look_ahead, before);
  EXPECT_GE(data_memory(*cpu).peak.look_ahead, before + 1000);
}

TEST(DataMemory, BatchesOfTheHostCountAgainstTheLimitOfTensors) {
  const auto cpu = open_device({.kind = "cpu"});
  const auto held = static_cast<std::size_t>(limited_bytes().batches +
                                             limited_bytes().tensors);
  const TensorLimit limit(held + 1000);
  const Buffer batch = cpu->allocate(600);
  try {
    cpu->allocate(500);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(error.parts().why.find("400 bytes"), std::string::npos);
  }
  EXPECT_NO_THROW(cpu->allocate(400));
}

}  // namespace
}  // namespace penstock
