#include "penstock/transforms/augment/augment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "penstock/base/aligned.h"

// tests/data/sound/make_augment.py says the same in numpy.
namespace penstock {
namespace {

double between(Random& random, double least, double most) {
  return least + (most - least) * random.uniform();
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

/// So many values in each of `lines` that lie `stride` apart: by stores of
/// `kEach` values, the last one of a line over what is there already.
template <std::int64_t kStores, std::int64_t kEach>
void fill_each(float* first, std::int64_t lines, std::int64_t stride,
               std::int64_t width, float value) {
  float values[kEach];
  std::fill_n(values, kEach, value);
  for (std::int64_t line = 0; line < lines; ++line, first += stride) {
    for (std::int64_t at = 0; at + 1 < kStores; ++at)
      std::memcpy(first + at * kEach, values, sizeof(values));
    std::memcpy(first + width - kEach, values, sizeof(values));
  }
}

using FillLines = void (*)(float*, std::int64_t, std::int64_t, std::int64_t,
                           float);
/// By the number of stores of four values.
constexpr std::array<FillLines, 9> kFillFours = {
    nullptr,         fill_each<1, 4>, fill_each<2, 4>,
    fill_each<3, 4>, fill_each<4, 4>, fill_each<5, 4>,
    fill_each<6, 4>, fill_each<7, 4>, fill_each<8, 4>};

/// A mask of time in each of `lines`: how many stores it takes is the same in
/// all of them.
void fill_lines(float* first, std::int64_t lines, std::int64_t stride,
                std::int64_t width, float value) {
  const auto fours = static_cast<std::size_t>((width + 3) / 4);
  if (width == 0) return;
  if (width == 1) return fill_each<1, 1>(first, lines, stride, width, value);
  if (width < 4) return fill_each<2, 2>(first, lines, stride, width, value);
  if (fours < kFillFours.size())
    return kFillFours[fours](first, lines, stride, width, value);
  for (std::int64_t line = 0; line < lines; ++line, first += stride)
    std::fill_n(first, width, value);
}

/// Rows are copied so many at a time, and then changed: while the processor
/// copies it waits for the memory of several rows, which it does not where what
/// is drawn for one comes between. They stay in its second cache.
constexpr std::size_t kTogetherBytes = 256 << 10;
/// What is asked for ahead of a small row that is copied, and of a large one
/// while those before it are changed. The processor reads on by itself.
constexpr std::size_t kAheadBytes = 24 << 10, kBeginBytes = 4 << 10;

void ask_for(const std::byte* begin, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(begin + at, 0, 2);
}

void copy_rows(std::span<const StoredRow> rows, std::size_t first,
               std::size_t end, const TensorPlace& to) {
  const std::size_t ahead = kAheadBytes / to.bytes;
  for (std::size_t r = first; r < end; ++r) {
    if (ahead > 0 && r + ahead < rows.size())
      ask_for(rows[r + ahead].tensors, to.bytes);
    std::memcpy(to.row(r), rows[r].tensors, to.bytes);
  }
}

/// Copies a row but for masks of frequencies, by ascending begin, which hold
/// `value`.
void copy_around(const float* from, float* to, const AugmentShape& shape,
                 std::span<const MaskPlace> masks, float value) {
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    std::int64_t at = 0;
    auto copy_until = [&](std::int64_t end) {
      if (end <= at) return;
      std::memcpy(
          to + at * shape.times, from + at * shape.times,
          static_cast<std::size_t>((end - at) * shape.times) * sizeof(float));
      at = end;
    };
    for (MaskPlace mask : masks) {
      copy_until(mask.begin);
      const std::int64_t end = mask.begin + mask.width;
      if (end <= at) continue;
      fill(to + at * shape.times, (end - at) * shape.times, value);
      at = end;
    }
    copy_until(shape.frequencies);
    from += shape.frequencies * shape.times;
    to += shape.frequencies * shape.times;
  }
}

}  // namespace

std::optional<float> drawn_factor(const Gain& of, Random random) {
  const bool drawn = random.uniform() < of.probability;
  const double gain = between(random, of.least, of.most);
  if (!drawn) return std::nullopt;
  return static_cast<float>(std::pow(10.0, gain / 20));
}

std::int64_t drawn_shift(const TimeShift& of, std::int64_t times,
                         Random random) {
  const bool drawn = random.uniform() < of.probability;
  const auto most =
      static_cast<std::int64_t>(of.most * static_cast<double>(times));
  const std::int64_t by = static_cast<std::int64_t>(random.below(
                              2 * static_cast<std::uint64_t>(most) + 1)) -
                          most;
  return drawn ? by : 0;
}

AugmentShape::AugmentShape(const Shape& row) {
  if (!row.empty()) times = row.back();
  if (row.size() > 1) frequencies = row[row.size() - 2];
  for (std::size_t d = 0; d + 2 < row.size(); ++d) channels *= row[d];
}

void Augmenter::apply(std::span<const StoredRow> rows, std::size_t first,
                      std::size_t end, DrawKey key, const AugmentShape& shape,
                      const TensorPlace& to, std::size_t done) {
  for (std::size_t at = done; at < list_.size(); ++at)
    std::visit(
        [&](const auto& one) {
          for (std::size_t r = first; r < end; ++r)
            run(one, reinterpret_cast<float*>(to.row(r)), shape,
                draws_of(key, rows[r], first_ + at));
        },
        list_[at]);
}

void Augmenter::copy(std::span<const StoredRow> rows, DrawKey key,
                     const AugmentShape& shape, const TensorPlace& to) {
  const std::size_t together =
      std::max<std::size_t>(1, kTogetherBytes / to.bytes);
  const SpecAugment* masks = masks_of_copies(shape);
  for (std::size_t first = 0; first < rows.size(); first += together) {
    const std::size_t end = std::min(rows.size(), first + together);
    if (masks != nullptr)
      copy_masked(*masks, rows.subspan(first, end - first), key, shape, to,
                  first);
    else
      copy_rows(rows, first, end, to);
    if (to.bytes > kAheadBytes)
      for (std::size_t r = end; r < std::min(rows.size(), end + together); ++r)
        ask_for(rows[r].tensors, kBeginBytes);
    apply(rows, first, end, key, shape, to, masks != nullptr ? 1 : 0);
  }
}

/// Those that come first, where some of their frequencies need not be copied.
const SpecAugment* Augmenter::masks_of_copies(const AugmentShape& shape) const {
  const auto* masks =
      list_.empty() ? nullptr : std::get_if<SpecAugment>(&list_[0]);
  return masks != nullptr && masks->time_warp == 0 &&
                 masks->frequency_masks > 0 && shape.frequencies > 1
             ? masks
             : nullptr;
}

/// Rows, of which the first one is the `place`-th in the batch.
void Augmenter::copy_masked(const SpecAugment& of,
                            std::span<const StoredRow> rows, DrawKey key,
                            const AugmentShape& shape, const TensorPlace& to,
                            std::size_t place) {
  const auto value = static_cast<float>(of.value);
  const auto frequency_masks = static_cast<std::size_t>(of.frequency_masks);
  const auto each = frequency_masks + static_cast<std::size_t>(of.time_masks);
  masks_.clear();
  const auto add = [&](MaskPlace mask) { masks_.push_back(mask); };
  for (const StoredRow& row : rows) {
    Random random = draws_of(key, row, first_);
    draw_masks(of, shape, random, add, add);
    std::ranges::sort(std::span(masks_).last(frequency_masks), {},
                      &MaskPlace::begin);
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    copy_around(reinterpret_cast<const float*>(rows[r].tensors),
                reinterpret_cast<float*>(to.row(place + r)), shape,
                std::span(masks_).subspan(r * each, each).last(frequency_masks),
                value);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t m = 0; m + frequency_masks < each; ++m) {
      const MaskPlace mask = masks_[r * each + m];
      fill_lines(reinterpret_cast<float*>(to.row(place + r)) + mask.begin,
                 shape.lines(), shape.times, mask.width, value);
    }
}

void Augmenter::run(const SpecAugment& of, float* values,
                    const AugmentShape& shape, Random random) {
  if (of.time_warp > 0) warp(of.time_warp, values, shape, random);
  const auto value = static_cast<float>(of.value);
  const std::int64_t lines = shape.lines();
  draw_masks(
      of, shape, random,
      [&](MaskPlace mask) {
        if (lines == 1)
          fill_one(values, shape.times, of.time_width, mask, value);
        else
          fill_lines(values + mask.begin, lines, shape.times, mask.width,
                     value);
      },
      [&](MaskPlace mask) {
        for (std::int64_t c = 0; c < shape.channels; ++c)
          fill(values + (c * shape.frequencies + mask.begin) * shape.times,
               mask.width * shape.times, value);
      });
}

// The time warp of SpecAugment (Park et al. 2019), as linear interpolation:
// what is at `from` moves to `to`, and both sides are stretched evenly. All
// lines of a row are warped alike.
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
  for (std::int64_t line = 0; line < shape.lines(); ++line) {
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

// With P the mean square of the row, a ratio of d decibels asks for noise of
// the deviation sqrt(P / 10^(d / 10)).
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
  const std::optional<float> factor = drawn_factor(of, random);
  if (!factor) return;
  for (std::int64_t i = 0; i < shape.elements(); ++i) values[i] *= *factor;
}

void Augmenter::run(const TimeShift& of, float* values,
                    const AugmentShape& shape, Random random) {
  const std::int64_t times = shape.times;
  const std::int64_t by = drawn_shift(of, times, random);
  if (by == 0) return;
  for (std::int64_t line = 0; line < shape.lines(); ++line) {
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
