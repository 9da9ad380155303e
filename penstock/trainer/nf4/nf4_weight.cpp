#include "penstock/trainer/nf4/nf4_weight.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

/// Blocks that a thread takes at once.
constexpr std::int64_t kBlocksAtOnce = 1024;

Dtype dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return Dtype::float64;
    case at::kHalf:
      return Dtype::float16;
    case at::kBFloat16:
      return Dtype::bfloat16;
    default:
      PENSTOCK_ASSERT(type == at::kFloat, "weights have a floating type");
      return Dtype::float32;
  }
}

at::ScalarType scalar_type_of(Dtype dtype) {
  if (dtype == Dtype::float16) return at::kHalf;
  return dtype == Dtype::bfloat16 ? at::kBFloat16 : at::kFloat;
}

/// Weights [begin, end) of a list on the host.
TensorView part_of(const at::Tensor& list, std::int64_t begin,
                   std::int64_t end) {
  auto* first = static_cast<std::byte*>(const_cast<void*>(
      list.const_data_ptr()));  // a view of what may only be read has no type
  return {
      .data = first + begin * static_cast<std::int64_t>(list.element_size()),
      .dtype = dtype_of(list.scalar_type()),
      .shape = {end - begin}};
}

/// Calls `work` with weights [begin, end), in parallel; each begins a block.
template <class Work>
void for_blocks(std::int64_t weights, Work work) {
  at::parallel_for(0, nf4_blocks(weights), kBlocksAtOnce,
                   [&](std::int64_t first, std::int64_t last) {
                     work(first * kNf4Block,
                          std::min(weights, last * kNf4Block));
                   });
}

/// The codes and the scales of weights [begin, end).
template <class Number>
std::span<Number> span_of(Number* first, std::int64_t begin,
                          std::int64_t count) {
  return {first + begin, static_cast<std::size_t>(count)};
}

template <class Number>
at::Tensor copied(std::span<const Number> list, at::ScalarType type,
                  at::Device device) {
  at::Tensor tensor = at::empty({std::ssize(list)}, type);
  if (!list.empty())
    std::memcpy(tensor.mutable_data_ptr(), list.data(), list.size_bytes());
  return tensor.to(device);
}

/// On the host; `scales` of weights.
void dequantize_on_host(const at::Tensor& codes, const float* scales,
                        const at::Tensor& into) {
  const auto* first = codes.const_data_ptr<std::uint8_t>();
  for_blocks(into.numel(), [&](std::int64_t begin, std::int64_t end) {
    dequantize_nf4(span_of(first, begin / 2, nf4_bytes(end - begin)),
                   span_of(scales, begin / kNf4Block, nf4_blocks(end - begin)),
                   part_of(into, begin, end));
  });
}

/// All of a list on the host.
template <class Number>
std::span<const Number> listed(const at::Tensor& list) {
  return span_of(list.const_data_ptr<Number>(), 0, list.numel());
}

/// Each scale as often as its block has members.
at::Tensor spread(const at::Tensor& scales, std::int64_t block,
                  std::int64_t count) {
  return scales.repeat_interleave(block).slice(0, 0, count);
}

}  // namespace

std::int64_t Nf4Weight::bytes() const {
  std::size_t all = codes.nbytes() + scales.nbytes();
  if (nested()) all += scale_codes.nbytes() + scale_values.nbytes();
  return static_cast<std::int64_t>(all);
}

Nf4Weight nf4_weight(const at::Tensor& weight, bool nested, at::Device device) {
  const at::Tensor list = weight.contiguous();
  std::vector<std::uint8_t> codes(
      static_cast<std::size_t>(nf4_bytes(list.numel())));
  std::vector<float> scales(static_cast<std::size_t>(nf4_blocks(list.numel())));
  for_blocks(list.numel(), [&](std::int64_t begin, std::int64_t end) {
    quantize_nf4(
        part_of(list, begin, end),
        span_of(codes.data(), begin / 2, nf4_bytes(end - begin)),
        span_of(scales.data(), begin / kNf4Block, nf4_blocks(end - begin)));
  });
  Nf4Parts parts{.shape = weight.sizes().vec(),
                 .dtype = dtype_of(weight.scalar_type()),
                 .codes = codes};
  if (!nested) {
    parts.scales = std::move(scales);
    return nf4_weight(parts, device);
  }
  NestedScales second = nested_scales(scales);
  parts.scales = std::move(second.scales);
  parts.scale_codes = std::move(second.codes);
  parts.scale_values = {scale_values().begin(), scale_values().end()};
  parts.mean = second.mean;
  return nf4_weight(parts, device);
}

Nf4Weight nf4_weight(const Nf4Parts& parts, at::Device device) {
  Nf4Weight weight{.codes = copied(parts.codes, at::kByte, device),
                   .scales = copied(std::span(std::as_const(parts.scales)),
                                    at::kFloat, device),
                   .mean = parts.mean,
                   .out = parts.shape[0],
                   .in = parts.shape[1],
                   .dtype = scalar_type_of(parts.dtype)};
  if (!parts.nested()) return weight;
  weight.scale_codes =
      copied(std::span(std::as_const(parts.scale_codes)), at::kByte, device);
  weight.scale_values =
      copied(std::span(std::as_const(parts.scale_values)), at::kFloat, device);
  return weight;
}

at::Tensor dequantized_on_host(const Nf4Weight& weight) {
  at::Tensor into = at::empty({weight.out, weight.in}, weight.dtype);
  std::vector<float> scales;
  if (weight.nested())
    scales = scales_of(
        listed<std::uint8_t>(weight.scale_codes), listed<float>(weight.scales),
        static_cast<float>(weight.mean), listed<float>(weight.scale_values));
  dequantize_on_host(
      weight.codes,
      weight.nested() ? scales.data() : weight.scales.const_data_ptr<float>(),
      into);
  return into;
}

// The operations round where the definition does: the product of value and
// scale, and where scales are nested that product and then the sum.
at::Tensor weight_scales(const Nf4Weight& weight) {
  if (!weight.nested()) return weight.scales;
  return at::index_select(weight.scale_values, 0,
                          weight.scale_codes.to(at::kInt)) *
             spread(weight.scales, kScaleBlock, weight.scale_codes.numel()) +
         weight.mean;
}

at::Tensor dequantized_by_operations(const Nf4Weight& weight) {
  const at::Tensor values =
      at::tensor(at::ArrayRef<float>(nf4_values())).to(weight.codes.device());
  const at::Tensor places = at::stack({weight.codes.bitwise_right_shift(4),
                                       weight.codes.bitwise_and(15)},
                                      1)
                                .reshape(-1)
                                .slice(0, 0, weight.size())
                                .to(at::kInt);
  return (at::index_select(values, 0, places) *
          spread(weight_scales(weight), kNf4Block, weight.size()))
      .to(weight.dtype)
      .reshape({weight.out, weight.in});
}

}  // namespace penstock
