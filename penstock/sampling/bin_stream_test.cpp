#include "penstock/sampling/bin_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "penstock/base/error.h"
#include "penstock/base/random.h"

namespace penstock {
namespace {

constexpr std::int32_t kSize = 16;

/// Samples of 0 to 40 elements, and who was asked for.
struct Samples {
  explicit Samples(std::int64_t count, std::int32_t most = 40) {
    for (std::int64_t i = 0; i < count; ++i) {
      Random random(5, 0, static_cast<std::uint64_t>(i), 0);
      lengths.push_back(static_cast<std::int32_t>(
          random.below(static_cast<std::uint64_t>(most) + 1)));
    }
  }
  BinStream stream(std::int64_t window, std::uint64_t seed = 1) {
    return BinStream(std::ssize(lengths),
                     {.size = kSize, .window = window, .seed = seed},
                     [this](std::span<const std::int64_t> samples,
                            std::span<std::int32_t> out) {
                       ++calls;
                       for (std::size_t i = 0; i < samples.size(); ++i) {
                         asked.insert(samples[i]);
                         out[i] = lengths[static_cast<std::size_t>(samples[i])];
                       }
                     });
  }
  std::int64_t elements() const {
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  }

  std::vector<std::int32_t> lengths;
  std::set<std::int64_t> asked;
  int calls = 0;
};

/// Bins from `first` on, until they hold so many elements.
std::vector<std::vector<SampleRange>> bins_of(BinStream& stream,
                                              std::int64_t first,
                                              std::int64_t elements) {
  std::vector<std::vector<SampleRange>> bins;
  while (elements > 0) {
    std::vector<SampleRange>& bin = bins.emplace_back();
    const std::int32_t left = stream.append(first++, bin);
    std::int32_t held = 0;
    for (const SampleRange& piece : bin) held += piece.end - piece.begin;
    EXPECT_EQ(held + left, kSize);
    EXPECT_GT(held, 0);
    elements -= held;
  }
  EXPECT_EQ(elements, 0) << "a pass ends where a bin does";
  return bins;
}

class BinStreamTest : public testing::TestWithParam<std::int64_t> {};

TEST_P(BinStreamTest, EachPassHasEveryElementOnce) {
  Samples samples(2000);
  BinStream stream = samples.stream(GetParam());
  std::int64_t first = 0;
  std::vector<std::vector<std::vector<SampleRange>>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    passes.push_back(bins_of(stream, first, samples.elements()));
    first += std::ssize(passes.back());
    std::map<std::int64_t, std::vector<SampleRange>> of;
    for (const auto& bin : passes.back())
      for (const SampleRange& piece : bin) of[piece.sample].push_back(piece);
    for (std::size_t s = 0; s < samples.lengths.size(); ++s) {
      auto& pieces = of[static_cast<std::int64_t>(s)];
      std::ranges::sort(pieces, {}, &SampleRange::begin);
      std::int32_t end = 0;
      for (const SampleRange& piece : pieces) {
        ASSERT_EQ(piece.begin, end);
        end = piece.end;
      }
      ASSERT_EQ(end, samples.lengths[s]) << "sample " << s;
    }
  }
  EXPECT_NE(passes[0], passes[1]) << "each has an order of its own";
  EXPECT_EQ(stream.count(), first);
  EXPECT_EQ(stream.elements(), 3 * samples.elements());
}

TEST_P(BinStreamTest, ABinIsTheSameWhicheverIsAskedForFirst) {
  Samples samples(2000);
  BinStream stream = samples.stream(GetParam());
  const auto bins = bins_of(stream, 0, samples.elements());
  BinStream again = samples.stream(GetParam());
  for (std::int64_t b : {std::ssize(bins) - 1, std::int64_t{0},
                         std::ssize(bins) / 2, std::int64_t{7}}) {
    std::vector<SampleRange> bin;
    again.append(b, bin);
    EXPECT_EQ(bin, bins[static_cast<std::size_t>(b)]);
  }
  std::vector<SampleRange> other;
  samples.stream(GetParam(), 2).append(0, other);
  EXPECT_NE(other, bins[0]) << "the seed decides";
}

INSTANTIATE_TEST_SUITE_P(Windows, BinStreamTest,
                         testing::Values(1, 10, 300, 512, 2000, 9999));

TEST(BinStream, AsksForTheLengthsOfAWindowWhenItsFirstBinIs) {
  Samples samples(10'000);
  BinStream stream = samples.stream(1024);
  EXPECT_EQ(samples.calls, 0);
  std::vector<SampleRange> bin;
  stream.append(0, bin);
  EXPECT_EQ(samples.calls, 1);
  EXPECT_EQ(std::ssize(samples.asked), 1024);
  std::set<std::int64_t> pages;
  for (std::int64_t sample : samples.asked)
    pages.insert(sample / BinStream::kPage);
  EXPECT_LE(pages.size(), 5u) << "neighbours are read together";
  const std::int64_t of_window = stream.count();
  for (std::int64_t b = 1; b < of_window; ++b) stream.append(b, bin);
  EXPECT_EQ(samples.calls, 1);
  stream.append(of_window, bin);
  EXPECT_EQ(samples.calls, 2);
}

TEST(BinStream, WindowsAreAsFullAsBestFitMakesThem) {
  Samples samples(20'000, 12);
  BinStream stream = samples.stream(4096);
  bins_of(stream, 0, samples.elements());
  EXPECT_GT(static_cast<double>(stream.elements()) /
                static_cast<double>(stream.count() * kSize),
            0.99);
}

TEST(BinStream, SamplesWithoutAnElementAreAnErrorAndNoEndlessLoop) {
  Samples samples(1000, 0);
  BinStream stream = samples.stream(100);
  std::vector<SampleRange> bin;
  try {
    stream.append(0, bin);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "packing.empty");
  }
}

}  // namespace
}  // namespace penstock
