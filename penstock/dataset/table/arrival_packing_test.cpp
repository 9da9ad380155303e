#include "penstock/dataset/table/arrival_packing.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

constexpr std::int64_t kBlocks = 20, kRows = 100;

/// Blocks of as many rows each; `block_of` says which one holds the next id.
template <class BlockOf>
bool by_id(BlockOf block_of) {
  std::vector<ParsedBlock> blocks(kBlocks);
  std::vector<RowRef> refs;
  for (std::int64_t id = 0; id < kBlocks * kRows; ++id) {
    auto b = static_cast<std::uint32_t>(block_of(id));
    refs.push_back({b, static_cast<std::uint32_t>(blocks[b].rows())});
    blocks[b].hashes.push_back(0);
  }
  return arrived_by_id({blocks, refs});
}

TEST(ArrivedById, IsTrueOfBlocksThatEndOneAfterTheOther) {
  EXPECT_TRUE(by_id([](std::int64_t id) { return id / kRows; }));
  EXPECT_TRUE(by_id([](std::int64_t id) { return kBlocks - 1 - id / kRows; }));
  // Two at a time, as of two readers of every second row.
  EXPECT_TRUE(
      by_id([](std::int64_t id) { return id / (2 * kRows) * 2 + id % 2; }));
}

TEST(ArrivedById, IsFalseWhereBlocksWouldBeHeldToTheEnd) {
  EXPECT_FALSE(by_id([](std::int64_t id) { return id % kBlocks; }));
  EXPECT_FALSE(by_id([](std::int64_t id) { return id / 10 % kBlocks; }));
  EXPECT_FALSE(
      by_id([](std::int64_t id) { return id / (5 * kRows) * 5 + id % 5; }));
}

TEST(ArrivedById, IsTrueOfNoRows) {
  std::vector<ParsedBlock> none;
  EXPECT_TRUE(arrived_by_id({none, {}}));
}

}  // namespace
}  // namespace penstock
