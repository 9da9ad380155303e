#include "penstock/sampling/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "penstock/base/random.h"

namespace penstock {
namespace {

std::vector<std::int32_t> some_lengths(std::int64_t count, std::int32_t most,
                                       std::uint64_t seed = 1) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(seed, 0, static_cast<std::uint64_t>(i), 0);
    lengths.push_back(static_cast<std::int32_t>(
        random.below(static_cast<std::uint64_t>(most) + 1)));
  }
  return lengths;
}

std::vector<SampleRange> pieces_of(const Bins& bins, std::int64_t epoch = 0) {
  std::vector<SampleRange> all;
  for (std::int64_t b = 0; b < bins.count(); ++b) bins.append(b, epoch, all);
  return all;
}

/// Every element of every sample once, in pieces that follow each other.
void expect_all_of(const std::vector<std::int32_t>& lengths, const Bins& bins,
                   std::int64_t epoch = 0) {
  std::map<std::int64_t, std::vector<SampleRange>> of;
  for (const SampleRange& piece : pieces_of(bins, epoch))
    of[piece.sample].push_back(piece);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    auto& pieces = of[static_cast<std::int64_t>(s)];
    std::ranges::sort(pieces, {}, &SampleRange::begin);
    std::int32_t end = 0;
    for (const SampleRange& piece : pieces) {
      EXPECT_EQ(piece.begin, end);
      EXPECT_GT(piece.end, piece.begin);
      end = piece.end;
    }
    EXPECT_EQ(end, lengths[s]) << "sample " << s;
  }
}

/// What the definition says, one bin after the other.
std::vector<std::int32_t> room_by_definition(std::vector<std::int32_t> lengths,
                                             std::int32_t size) {
  std::ranges::sort(lengths, std::greater());
  std::vector<std::int32_t> room;
  for (std::int32_t length : lengths) {
    if (length == 0) continue;
    std::size_t best = room.size();
    for (std::size_t b = 0; b < room.size(); ++b)
      if (room[b] >= length && (best == room.size() || room[b] < room[best]))
        best = b;
    if (best == room.size()) room.push_back(size);
    room[best] -= length;
  }
  std::ranges::sort(room);
  return room;
}

std::vector<std::int32_t> room_of(const Bins& bins, std::int64_t epoch = 0) {
  std::vector<std::int32_t> room;
  std::vector<SampleRange> pieces;
  for (std::int64_t b = 0; b < bins.count(); ++b)
    room.push_back(bins.append(b, epoch, pieces));
  std::ranges::sort(room);
  return room;
}

TEST(Packing, PutsEverySampleIntoBinsWhole) {
  const auto lengths = some_lengths(5000, 100);
  const Bins bins(lengths, {.size = 100});
  expect_all_of(lengths, bins);
  EXPECT_EQ(bins.cut(), 0);
  EXPECT_GT(bins.empty(), 0);
  EXPECT_EQ(bins.samples() + bins.empty(), 5000);
  EXPECT_EQ(std::ssize(pieces_of(bins)), bins.samples());
}

TEST(Packing, FillsTheBinWithTheLeastRoomThatIsEnough) {
  for (std::int32_t size : {1, 7, 64, 65, 300}) {
    const auto lengths = some_lengths(400, size, 7);
    EXPECT_EQ(room_of(Bins(lengths, {.size = size})),
              room_by_definition(lengths, size))
        << "bins of " << size;
  }
}

TEST(Packing, SamplesOfOneLengthFillABinBeforeTheNextOne) {
  // The room that 7 leaves is the least for 3; then each bin takes three.
  const std::vector<std::int32_t> lengths = {3, 3, 7, 3, 3, 3};
  for (bool repack : {false, true}) {
    const Bins bins(lengths, {.size = 10, .repack = repack});
    const std::vector<SampleRange> expected = {{2, 0, 7}, {0, 0, 3}, {1, 0, 3},
                                               {3, 0, 3}, {4, 0, 3}, {5, 0, 3}};
    EXPECT_EQ(pieces_of(bins), expected);
    EXPECT_EQ(room_of(bins), (std::vector<std::int32_t>{0, 1, 7}));
  }
}

TEST(Packing, RepackingBeginsWithTheBinsThatThereAreWithout) {
  const auto lengths = some_lengths(3000, 250);
  for (std::int64_t window : {0, 70}) {
    const BinRules rules{.size = 100, .window = window, .seed = 2};
    BinRules repacked = rules;
    repacked.repack = true;
    EXPECT_EQ(pieces_of(Bins(lengths, rules)),
              pieces_of(Bins(lengths, repacked)));
  }
}

TEST(Packing, CutsOnlySamplesThatAreLongerThanABin) {
  const std::vector<std::int32_t> lengths = {10, 25, 3, 7, 0, 41, 9};
  const Bins bins(lengths, {.size = 10});
  expect_all_of(lengths, bins);
  EXPECT_EQ(bins.cut(), 2);  // of 25 and 41 elements
  EXPECT_EQ(bins.elements(), 95);
  EXPECT_EQ(bins.count(), 10);
  EXPECT_DOUBLE_EQ(bins.efficiency(), 0.95);
}

TEST(Packing, WrapsSamplesInTheirOrder) {
  const std::vector<std::int32_t> lengths = {6, 6, 0, 3};
  const Bins bins(lengths, {.size = 5, .wrapped = true});
  const std::vector<SampleRange> expected = {
      {0, 0, 5}, {0, 5, 6}, {1, 0, 4}, {1, 4, 6}, {3, 0, 3}};
  EXPECT_EQ(pieces_of(bins), expected);
  EXPECT_EQ(bins.count(), 3);
  EXPECT_EQ(bins.cut(), 2);
  EXPECT_DOUBLE_EQ(bins.efficiency(), 1);
}

TEST(Packing, NothingIsNoBin) {
  EXPECT_EQ(Bins({}, {.size = 8}).count(), 0);
  const std::vector<std::int32_t> empty = {0, 0};
  EXPECT_EQ(Bins(empty, {.size = 8, .wrapped = true}).count(), 0);
  EXPECT_EQ(Bins(empty, {.size = 8}).empty(), 2);
}

TEST(Packing, RepackingGivesOtherNeighboursAndAsManyBins) {
  const auto lengths = some_lengths(2000, 120);
  const Bins bins(lengths, {.size = 100, .repack = true, .seed = 5});
  const auto first = pieces_of(bins, 1), second = pieces_of(bins, 2);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, pieces_of(bins, 1));
  for (std::int64_t epoch : {0, 1, 2}) {
    expect_all_of(lengths, bins, epoch);
    EXPECT_EQ(room_of(bins, epoch), room_of(bins));
  }
  const Bins plain(lengths, {.size = 100});
  EXPECT_EQ(pieces_of(plain, 1), pieces_of(plain, 2));
}

TEST(Packing, AWindowPacksOnlyItsOwnSamples) {
  auto lengths = some_lengths(1000, 60);
  for (std::int32_t& length : lengths) ++length;
  const Bins bins(lengths, {.size = 64, .window = 100, .seed = 3});
  expect_all_of(lengths, bins);
  // A window's samples are all in bins before the next one's first.
  std::vector<SampleRange> pieces;
  std::set<std::size_t> seen;
  for (std::int64_t b = 0; b < bins.count(); ++b) {
    bins.append(b, 0, pieces);
    seen.insert(pieces.size());
  }
  for (std::size_t end = 100; end <= 1000; end += 100)
    EXPECT_TRUE(seen.contains(end)) << end;
  EXPECT_LT(bins.efficiency(), Bins(lengths, {.size = 64}).efficiency());
  const Bins other(lengths, {.size = 64, .window = 100, .seed = 4});
  EXPECT_NE(pieces_of(bins), pieces_of(other));
}

TEST(Packing, WebLikeLengthsFillMoreThan999Of1000) {
  std::vector<std::int32_t> lengths;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    Random random(1, 0, i, 0);
    lengths.push_back(static_cast<std::int32_t>(
        std::clamp(600 * std::exp(1.1 * random.normal()), 8.0, 100'000.0)));
  }
  for (std::int32_t size : {2048, 8192})
    EXPECT_GE(Bins(lengths, {.size = size}).efficiency(), 0.999) << size;
}

}  // namespace
}  // namespace penstock
