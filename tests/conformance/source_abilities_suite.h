#pragma once

#include <algorithm>

#include "tests/conformance/source_suite.h"

/// What every source must do with what it says it can: limits of blocks, keys
/// and positions, chunks and lengths. Include it and instantiate SourceSuite.
namespace penstock {

TEST_P(SourceSuite, KeepsBlocksToTheirBytes) {
  std::vector<SuiteRow> rows;
  for (std::int64_t i = 0; i < 120; ++i) {
    rows.push_back(row(i));
    std::size_t letters = i % 40 == 30 ? 20'000 : static_cast<std::size_t>(i);
    rows.back().doc = "\"" + std::string(letters, 'x') + "\"";
  }
  fill(rows);
  auto source = open();
  constexpr std::size_t kMost = 4096;
  std::int64_t longest = 0, most_rows = 0;
  std::vector<std::string> found;
  auto reader = open_checked_reader(*source);
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {.rows = 50, .bytes = kMost},
                 [&](KeyList& keys, Block& block) {
                   EXPECT_LE(block.rows, 50);
                   if (block.rows > 1) {
                     EXPECT_LE(block.bytes(), kMost);
                   } else if (block.bytes() > kMost) {
                     ++longest;
                   }
                   most_rows = std::max(most_rows, block.rows);
                   for (std::int64_t at = 0; at < block.rows; ++at)
                     found.push_back(shown(keys, block, at));
                   return true;
                 });
  EXPECT_EQ(longest, 3);
  EXPECT_GE(most_rows, 8);
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(all_shown()));
}

TEST_P(SourceSuite, SaysWhatItIsWithoutReading) {
  fill(3);
  auto source = open();
  ASSERT_NE(source->identity().find("kind"), nullptr);
  EXPECT_TRUE(source->identity().find("kind")->is_string());
  EXPECT_EQ(source->identity(), open()->identity());
}

TEST_P(SourceSuite, SaysWhatItCanDo) {
  fill(30);
  auto source = open();
  const Abilities& abilities = source->abilities();
  EXPECT_EQ(abilities.by_position, GetParam().by_position);
  EXPECT_EQ(abilities.by_key, !GetParam().by_position);
  RowCount count = source->count();
  if (count.exact || abilities.by_position) {
    EXPECT_EQ(count.rows, 30);
  }
  if (!abilities.sorted) return;
  KeyList all(source->facts().key);
  auto reader = open_checked_reader(*source);
  for (const Partition& part : source->partitions(3))
    reader->scan(part, {.rows = 7}, [&](KeyList& keys, Block&) {
      for (std::int64_t at = 0; at < keys.size(); ++at) all.append(keys, at);
      return true;
    });
  for (std::int64_t at = 1; at < all.size(); ++at)
    EXPECT_LT(all.compare(at - 1, at), 0) << at;
}

TEST_P(SourceSuite, CollectsKeysThatAreGoneWhereTheyAreAskedFor) {
  if (GetParam().by_position) return;  // positions stay
  fill(20);
  rows_.push_back(row(21));
  rows_.push_back(row(22));  // neither is in the table
  auto source = open();
  KeyList keys = keys_of({20, 3, 21, 3, 20});
  std::vector<std::int64_t> gone;
  ReadRequest request(keys);
  request.gone = &gone;
  Block block;
  open_checked_reader(*source)->read(request, block);
  EXPECT_THAT(gone, testing::UnorderedElementsAre(0, 2, 4));
  EXPECT_EQ(values(block, 1), values(std::size_t{3}));
  EXPECT_EQ(values(block, 3), values(std::size_t{3}));
  for (std::int64_t row : gone)
    for (const Column& column : block.columns) EXPECT_FALSE(column.valid(row));
}

TEST_P(SourceSuite, CutsPositionsIntoChunks) {
  fill(100);
  auto source = open();
  const ChunkMap* chunks = source->chunks();
  if (chunks == nullptr) return;  // it has no chunks
  ASSERT_FALSE(chunks->ends.empty());
  EXPECT_EQ(chunks->ends.back(), 100);
  EXPECT_TRUE(std::ranges::is_sorted(chunks->ends));
  EXPECT_EQ(chunks->chunk_of(0), 0);
  EXPECT_EQ(chunks->chunk_of(99), std::ssize(chunks->ends) - 1);
  EXPECT_EQ(chunks->chunk_of(chunks->ends[0]), 1);
}

TEST_P(SourceSuite, KnowsLengthsAsTheyAre) {
  fill(60);
  auto source = open();
  std::vector<std::int32_t> lengths(40);
  if (!source->lengths(2, 15, lengths)) return;  // it knows no lengths
  EXPECT_FALSE(source->lengths(0, 15, lengths)) << "all numbers are as long";
  for (std::size_t at = 0; at < lengths.size(); ++at)
    EXPECT_EQ(lengths[at], std::ssize(*rows_[15 + at].doc));
}

}  // namespace penstock
