#include "penstock/transforms/augment/augment.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

// tests/data/sound/make_augment.py says the same in numpy.
namespace penstock {
namespace {

constexpr std::uint64_t kAugment = 0x6175676d656e74;  // "augment"

double between(Random& random, double least, double most) {
  return least + (most - least) * random.uniform();
}

/// Where a mask begins and how wide it is.
struct MaskPlace {
  std::int64_t begin, width;
};

MaskPlace draw_mask(Random& random, std::int64_t most, std::int64_t size) {
  const auto width = static_cast<std::int64_t>(
      random.below(static_cast<std::uint64_t>(std::min(most, size)) + 1));
  const auto begin = static_cast<std::int64_t>(
      random.below(static_cast<std::uint64_t>(size - width) + 1));
  return {begin, width};
}

void fill(float* first, std::int64_t count, float value) {
  if (std::bit_cast<std::uint32_t>(value) == 0)
    std::memset(first, 0, static_cast<std::size_t>(count) * sizeof(value));
  else
    std::fill_n(first, count, value);
}

/// A mask of at most `most` values, all of which are written: a branch on the
/// width that was drawn would be a surprise to the processor in every row.
void fill_one(float* line, std::int64_t size, std::int64_t most, MaskPlace mask,
              float value) {
  most = std::min(most, size);
  const std::int64_t first = std::min(mask.begin, size - most);
  const auto begin = static_cast<std::uint32_t>(mask.begin - first);
  const auto width = static_cast<std::uint32_t>(mask.width);
  line += first;
  for (std::uint32_t at = 0; at < static_cast<std::uint32_t>(most); ++at)
    line[at] = at - begin < width ? value : line[at];
}

/// So many values in each of `lines` that lie `stride` apart: four at once, the
/// last four of a line over what is there already.
void fill_lines(float* first, std::int64_t lines, std::int64_t stride,
                std::int64_t width, float value) {
  constexpr std::int64_t kFour = 4;
  const float four[] = {value, value, value, value};
  for (std::int64_t line = 0; line < lines; ++line, first += stride) {
    if (width < kFour) {
      for (std::int64_t at = 0; at < width; ++at) first[at] = value;
      continue;
    }
    for (std::int64_t at = 0; at < width - kFour; at += kFour)
      std::memcpy(first + at, four, sizeof(four));
    std::memcpy(first + width - kFour, four, sizeof(four));
  }
}

}  // namespace

AugmentShape::AugmentShape(const Shape& row) {
  if (!row.empty()) times = row.back();
  if (row.size() > 1) frequencies = row[row.size() - 2];
  for (std::size_t d = 0; d + 2 < row.size(); ++d) channels *= row[d];
}

void Augmenter::apply(float* values, const AugmentShape& shape,
                      const StoredRow& row, const DrawKey& key) {
  for (std::size_t at = 0; at < list_.size(); ++at) {
    const Random random = key.random(row, kAugment + first_ + at);
    std::visit([&](const auto& one) { run(one, values, shape, random); },
               list_[at]);
  }
}

void Augmenter::run(const SpecAugment& of, float* values,
                    const AugmentShape& shape, Random random) {
  if (of.time_warp > 0) warp(of.time_warp, values, shape, random);
  const auto value = static_cast<float>(of.value);
  const std::int64_t lines = shape.channels * shape.frequencies;
  for (std::int64_t m = 0; m < of.time_masks; ++m) {
    const MaskPlace mask = draw_mask(random, of.time_width, shape.times);
    if (lines == 1)
      fill_one(values, shape.times, of.time_width, mask, value);
    else
      fill_lines(values + mask.begin, lines, shape.times, mask.width, value);
  }
  for (std::int64_t m = 0; m < of.frequency_masks; ++m) {
    const MaskPlace mask =
        draw_mask(random, of.frequency_width, shape.frequencies);
    for (std::int64_t c = 0; c < shape.channels; ++c)
      fill(values + (c * shape.frequencies + mask.begin) * shape.times,
           mask.width * shape.times, value);
  }
}

void Augmenter::warp(std::int64_t most, float* values,
                     const AugmentShape& shape, Random& random) {
  const std::int64_t times = shape.times;
  if (times <= 2 * most + 1) return;
  const auto reach = static_cast<std::uint64_t>(most);
  const std::int64_t from =
      most + static_cast<std::int64_t>(
                 random.below(static_cast<std::uint64_t>(times) - 2 * reach));
  const std::int64_t to =
      from - most + static_cast<std::int64_t>(random.below(2 * reach + 1));
  const auto before =
      to > 0 ? static_cast<double>(from) / static_cast<double>(to) : 0;
  const auto after =
      static_cast<double>(times - from) / static_cast<double>(times - to);
  line_.resize(static_cast<std::size_t>(times));
  for (std::int64_t line = 0; line < shape.channels * shape.frequencies;
       ++line) {
    float* row = values + line * times;
    for (std::int64_t t = 0; t < times; ++t) {
      const double at = t < to ? static_cast<double>(t) * before
                               : static_cast<double>(from) +
                                     static_cast<double>(t - to) * after;
      const auto left = static_cast<std::int64_t>(at);
      const std::int64_t right = std::min(left + 1, times - 1);
      const auto part = static_cast<float>(at - static_cast<double>(left));
      line_[static_cast<std::size_t>(t)] =
          row[left] + part * (row[right] - row[left]);
    }
    std::copy(line_.begin(), line_.end(), row);
  }
}

void Augmenter::run(const Noise& of, float* values, const AugmentShape& shape,
                    Random random) {
  const bool drawn = random.uniform() < of.probability;
  const double ratio = between(random, of.least, of.most);
  if (!drawn) return;
  const std::int64_t count = shape.elements();
  double power = 0;
  for (std::int64_t i = 0; i < count; ++i)
    power += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  power /= static_cast<double>(count);
  const double deviation = std::sqrt(power / std::pow(10.0, ratio / 10));
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(static_cast<double>(values[i]) +
                                   deviation * random.normal());
}

void Augmenter::run(const Gain& of, float* values, const AugmentShape& shape,
                    Random random) {
  const bool drawn = random.uniform() < of.probability;
  const double gain = between(random, of.least, of.most);
  if (!drawn) return;
  const auto factor = static_cast<float>(std::pow(10.0, gain / 20));
  for (std::int64_t i = 0; i < shape.elements(); ++i) values[i] *= factor;
}

void Augmenter::run(const TimeShift& of, float* values,
                    const AugmentShape& shape, Random random) {
  const bool drawn = random.uniform() < of.probability;
  const auto most =
      static_cast<std::int64_t>(of.most * static_cast<double>(shape.times));
  const std::int64_t by = static_cast<std::int64_t>(random.below(
                              2 * static_cast<std::uint64_t>(most) + 1)) -
                          most;
  if (!drawn || by == 0) return;
  const std::int64_t times = shape.times;
  for (std::int64_t line = 0; line < shape.channels * shape.frequencies;
       ++line) {
    float* row = values + line * times;
    if (of.wraps) {
      std::rotate(row, row + (by > 0 ? times - by : -by), row + times);
    } else if (by > 0) {
      std::copy_backward(row, row + times - by, row + times);
      std::fill_n(row, by, 0.0F);
    } else {
      std::copy(row - by, row + times, row);
      std::fill_n(row + times + by, -by, 0.0F);
    }
  }
}

}  // namespace penstock
