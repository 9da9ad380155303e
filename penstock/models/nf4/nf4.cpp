#include "penstock/models/nf4/nf4.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/half.h"

namespace penstock {
namespace {

constexpr int kValues = 16;

/// Halfway between each value and the next.
const std::array<float, kValues - 1>& halfways() {
  static const std::array<float, kValues - 1> all = [] {
    std::array<float, kValues - 1> between{};
    for (std::size_t i = 0; i < between.size(); ++i)
      between[i] = (nf4_values()[i] + nf4_values()[i + 1]) / 2;
    return between;
  }();
  return all;
}

/// The numbers of a list from `begin` on, as float32; `convert` makes one of
/// what lies there.
template <class Number, class Convert>
void read(const TensorView& list, std::int64_t begin, std::span<float> into,
          Convert convert) {
  const std::byte* from =
      list.data + static_cast<std::size_t>(begin) * sizeof(Number);
  for (float& to : into) {
    Number number;
    std::memcpy(&number, from, sizeof(Number));
    to = convert(number);
    from += sizeof(Number);
  }
}

void read_numbers(const TensorView& list, std::int64_t begin,
                  std::span<float> into) {
  if (list.dtype == Dtype::bfloat16)
    read<std::uint16_t>(list, begin, into, from_bfloat16);
  else if (list.dtype == Dtype::float16)
    read<std::uint16_t>(list, begin, into, from_float16);
  else if (list.dtype == Dtype::float64)
    read<double>(list, begin, into,
                 [](double number) { return static_cast<float>(number); });
  else
    read<float>(list, begin, into, [](float number) { return number; });
}

/// Gives the block's scale. A block of zeros has code 7 in place of what 0 / 0
/// would be. The loop over a block is the inner one: it has no branches.
float quantize_block(std::span<const float> block,
                     std::span<std::uint8_t> codes) {
  float scale = 0;
  for (float weight : block) scale = std::max(scale, std::fabs(weight));
  if (!(scale > 0)) {
    std::ranges::fill(codes.first(block.size()), kNf4Zero);
    return scale;
  }
  std::array<float, kNf4Block> places{};
  std::array<int, kNf4Block> below{};
  for (std::size_t i = 0; i < block.size(); ++i) places[i] = block[i] / scale;
  for (float halfway : halfways())
    for (std::size_t i = 0; i < places.size(); ++i)
      below[i] += places[i] > halfway ? 1 : 0;
  for (std::size_t i = 0; i < block.size(); ++i)
    codes[i] = static_cast<std::uint8_t>(below[i]);
  return scale;
}

/// torch.linspace(0.1, 1, parts + 1) as it comes out of fused
/// multiplications: from the near end, each rounded once.
float tenth_to_one(int at, int parts) {
  const float step = (1.0F - 0.1F) / static_cast<float>(parts);
  return at < (parts + 1) / 2
             ? std::fma(step, static_cast<float>(at), 0.1F)
             : std::fma(-step, static_cast<float>(parts - at), 1.0F);
}

/// The place of the value that is nearest to `number`, of two the lower one.
/// Distances are exact as doubles.
std::uint8_t nearest_scale(double number) {
  const std::array<float, 256>& values = scale_values();
  const auto above = std::ranges::lower_bound(
      values, number, {}, [](float of) { return static_cast<double>(of); });
  if (above == values.begin()) return 0;
  if (above == values.end()) return 255;
  const auto below = above - 1;
  const bool lower = number - *below <= *above - number;
  return static_cast<std::uint8_t>((lower ? below : above) - values.begin());
}

}  // namespace

const std::array<float, 16>& nf4_values() {
  static constexpr std::array<float, kValues> all = {-1.0F,
                                                     -0.6961928009986877F,
                                                     -0.5250730514526367F,
                                                     -0.39491748809814453F,
                                                     -0.28444138169288635F,
                                                     -0.18477343022823334F,
                                                     -0.09105003625154495F,
                                                     0.0F,
                                                     0.07958029955625534F,
                                                     0.16093020141124725F,
                                                     0.24611230194568634F,
                                                     0.33791524171829224F,
                                                     0.44070982933044434F,
                                                     0.5626170039176941F,
                                                     0.7229568362236023F,
                                                     1.0F};
  return all;
}

// In the decade up to 10^-k, k = 6 ... 0, there are 2^(6 - k) values: the
// middles of as many equal parts between a tenth of it and itself.
const std::array<float, 256>& scale_values() {
  static const std::array<float, 256> all = [] {
    std::array<float, 256> values{};  // 0 is one of them
    std::size_t count = 1;
    for (int decade = 0; decade < 7; ++decade) {
      const auto unit = static_cast<float>(std::pow(10.0, decade - 6));
      const int parts = 1 << decade;
      for (int i = 0; i < parts; ++i) {
        const float middle =
            (tenth_to_one(i, parts) + tenth_to_one(i + 1, parts)) / 2;
        values[count++] = unit * middle;
        values[count++] = -(unit * middle);
      }
    }
    values[count] = 1;
    std::ranges::sort(values);
    return values;
  }();
  return all;
}

void quantize_nf4(const TensorView& weights, std::span<std::uint8_t> codes,
                  std::span<float> scales) {
  const std::int64_t count = elements_of(weights.shape);
  PENSTOCK_ASSERT(std::ssize(codes) == nf4_bytes(count) &&
                      std::ssize(scales) == nf4_blocks(count),
                  "codes and scales have room for the weights");
  std::array<float, kNf4Block> numbers{};
  std::array<std::uint8_t, kNf4Block> found{};
  for (std::int64_t at = 0; at < count; at += kNf4Block) {
    const auto size = static_cast<std::size_t>(std::min(kNf4Block, count - at));
    const std::span block = std::span(numbers).first(size);
    read_numbers(weights, at, block);
    scales[static_cast<std::size_t>(at / kNf4Block)] =
        quantize_block(block, found);
    if (size % 2 == 1) found[size] = kNf4Zero;
    for (std::size_t i = 0; i < size; i += 2)
      codes[(static_cast<std::size_t>(at) + i) / 2] =
          static_cast<std::uint8_t>(found[i] << 4 | found[i + 1]);
  }
}

namespace {

/// `put` rounds a float32 to the type of the weights.
template <class Number, class Put>
void dequantize(std::span<const std::uint8_t> codes,
                std::span<const float> scales, const TensorView& weights,
                Put put) {
  auto* to = reinterpret_cast<Number*>(weights.data);
  const std::int64_t count = elements_of(weights.shape);
  std::array<Number, kValues> scaled{};
  for (std::int64_t at = 0; at < count; ++at) {
    if (at % kNf4Block == 0) {
      const float scale = scales[static_cast<std::size_t>(at / kNf4Block)];
      for (std::size_t i = 0; i < scaled.size(); ++i)
        scaled[i] = put(nf4_values()[i] * scale);
    }
    const std::uint8_t both = codes[static_cast<std::size_t>(at / 2)];
    to[at] = scaled[at % 2 == 0 ? both >> 4 : both & 15];
  }
}

}  // namespace

void dequantize_nf4(std::span<const std::uint8_t> codes,
                    std::span<const float> scales, const TensorView& weights) {
  const std::int64_t count = elements_of(weights.shape);
  PENSTOCK_ASSERT(std::ssize(codes) == nf4_bytes(count) &&
                      std::ssize(scales) == nf4_blocks(count),
                  "there are codes and scales of all weights");
  if (is_half(weights.dtype))
    dequantize<std::uint16_t>(codes, scales, weights, [&](float value) {
      return to_half(weights.dtype, value);
    });
  else
    dequantize<float>(codes, scales, weights,
                      [](float value) { return value; });
}

// The mean is summed in float64, so that it does not depend on the order.
NestedScales nested_scales(std::span<const float> scales) {
  NestedScales nested;
  double sum = 0;
  for (float scale : scales) sum += scale;
  if (!scales.empty())
    nested.mean = static_cast<float>(sum / static_cast<double>(scales.size()));
  constexpr auto kBlock = static_cast<std::size_t>(kScaleBlock);
  for (std::size_t begin = 0; begin < scales.size(); begin += kBlock) {
    const std::span block =
        scales.subspan(begin, std::min(kBlock, scales.size() - begin));
    float greatest = 0;
    for (float scale : block)
      greatest = std::max(greatest, std::fabs(scale - nested.mean));
    nested.scales.push_back(greatest);
    for (float scale : block) {
      const float rest = scale - nested.mean;
      nested.codes.push_back(nearest_scale(greatest > 0 ? rest / greatest : 0));
    }
  }
  return nested;
}

// Product and sum are rounded one after the other (-ffp-contract=off).
std::vector<float> scales_of(std::span<const std::uint8_t> codes,
                             std::span<const float> scales, float mean,
                             std::span<const float> values) {
  std::vector<float> all(codes.size());
  constexpr auto kBlock = static_cast<std::size_t>(kScaleBlock);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = values[codes[i]] * scales[i / kBlock] + mean;
  return all;
}

}  // namespace penstock
