#include "penstock/sampling/draws.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/random.h"

namespace penstock {
namespace {

// Keeps these draws apart from all others under the same seed and epoch.
constexpr std::uint64_t kDraw = 0x64726177;  // "draw"

constexpr std::uint64_t kCell = std::uint64_t{1} << 32;
constexpr std::size_t kMostWeights = std::size_t{1} << 31;

[[noreturn]] void refuse(std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = "sampling.weights",
                                   .what = "cannot draw rows by their weights",
                                   .where = "loader.weights",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// Weights in proportion, as whole numbers whose sum is a cell per sample.
/// Every number is computed in one order and by one operation at a time, so
/// that no machine rounds otherwise.
std::vector<std::uint64_t> whole_numbers(std::span<const double> weights) {
  if (weights.size() >= kMostWeights)
    refuse("there are " + std::to_string(weights.size()) + " rows",
           "draw from fewer than " + std::to_string(kMostWeights));
  const double largest =
      weights.empty() ? 0 : *std::ranges::max_element(weights);
  if (!(largest > 0))
    refuse("the weights of all " + std::to_string(weights.size()) +
               " rows on the side 'train' are zero",
           "give the rows that may be drawn a weight above 0");
  double sum = 0;
  for (double weight : weights) sum += weight / largest;
  const std::uint64_t all = kCell * weights.size();
  const double each = static_cast<double>(all) / sum;
  std::vector<std::uint64_t> numbers;
  numbers.reserve(weights.size());
  std::uint64_t given = 0;
  for (double weight : weights) {
    const auto rounded = static_cast<std::uint64_t>(weight / largest * each);
    numbers.push_back(weight > 0 ? std::max<std::uint64_t>(rounded, 1) : 0);
    given += numbers.back();
  }
  // What rounding left, or took: less than 1 a sample, of 2^32 at least. A sum
  // below 0 wraps, and so does its opposite.
  *std::ranges::max_element(numbers) += all - given;
  return numbers;
}

}  // namespace

// Cells that their own sample does not fill are filled up, one after the other,
// by one that has too much; which may be too little then, and is filled itself,
// at once where the walk has passed it.
// Invariant: the numbers in `left` of the cells that are not yet filled add up
// to kCell for each. So while one has too little, another has too much, and
// each step fills one cell: linear time, in whole numbers that lose nothing.
Draws::Draws(std::span<const double> weights) {
  std::vector<std::uint64_t> left = whole_numbers(weights);
  digest_ = hash64(std::as_bytes(std::span(left)));
  const std::size_t count = left.size();
  cells_.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    cells_.push_back({.share = 0, .other = static_cast<std::uint32_t>(i)});
  auto from = [&](std::size_t at, auto wanted) {
    while (at < count && !wanted(left[at])) ++at;
    return at;
  };
  auto small = [](std::uint64_t number) { return number < kCell; };
  auto large = [](std::uint64_t number) { return number > kCell; };
  std::size_t walk = from(0, small), giver = from(0, large), filled = walk;
  while (filled < count && giver < count) {
    cells_[filled] = {.share = static_cast<std::uint32_t>(left[filled]),
                      .other = static_cast<std::uint32_t>(giver)};
    left[giver] -= kCell - left[filled];
    const bool passed = giver < walk && small(left[giver]);
    if (passed) {
      filled = giver;
    } else {
      walk = from(walk + 1, small);
      filled = walk;
    }
    giver = from(giver, large);
  }
}

void Draws::draw(std::uint64_t seed, std::int64_t epoch, std::int64_t first,
                 std::span<SampleRange> drawn) const {
  struct Place {
    std::uint32_t cell, at;
  };
  std::array<Place, 256> places;  // so that memory is asked for ahead
  while (!drawn.empty()) {
    const std::size_t count = std::min(places.size(), drawn.size());
    for (std::size_t i = 0; i < count; ++i) {
      Random random(seed, static_cast<std::uint64_t>(epoch),
                    static_cast<std::uint64_t>(first) + i, kDraw);
      // The whole part of a number in [0, samples), and what follows it.
      auto number =
          static_cast<unsigned __int128>(random.next()) * cells_.size();
      places[i] = {.cell = static_cast<std::uint32_t>(number >> 64),
                   .at = static_cast<std::uint32_t>(
                       static_cast<std::uint64_t>(number) >> 32)};
      __builtin_prefetch(&cells_[places[i].cell]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto [number, at] = places[i];
      const Cell& cell = cells_[number];
      drawn[i] = {.sample = at < cell.share ? number : cell.other};
    }
    first += static_cast<std::int64_t>(count);
    drawn = drawn.subspan(count);
  }
}

std::shared_ptr<const Draws> draws_of(const Drawing& drawing,
                                      std::vector<std::uint64_t> values) {
  std::vector<double> weights;
  weights.reserve(values.size());
  if (drawing.balance) {
    std::unordered_map<std::uint64_t, std::int64_t> rows;
    for (std::uint64_t value : values) ++rows[value];
    for (std::uint64_t value : values)
      weights.push_back(1 / static_cast<double>(rows[value]));
  } else {
    for (std::uint64_t value : values)
      weights.push_back(std::bit_cast<double>(value));
  }
  values = {};
  return std::make_shared<const Draws>(weights);
}

}  // namespace penstock
