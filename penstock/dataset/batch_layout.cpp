#include "penstock/dataset/batch_layout.h"

#include <algorithm>
#include <limits>

namespace penstock {

using What = BatchTensor::What;

void Dataset::lengths(std::size_t, std::span<const SampleRange>,
                      std::span<std::int32_t>) const {
  PENSTOCK_ASSERT(false, "a data set whose samples differ knows their lengths");
}

std::vector<BatchTensor> batch_tensors(const std::vector<Output>& outputs,
                                       bool weights,
                                       const std::vector<Output>& added) {
  std::vector<BatchTensor> tensors;
  std::size_t varying = 0;
  for (const Output& output : outputs) {
    BatchTensor tensor{.name = output.name,
                       .dtype = output.dtype,
                       .row_shape = output.row_shape,
                       .bytes = output.bytes()};
    if (output.lengths == Lengths::equal) {
      tensors.push_back(std::move(tensor));
      continue;
    }
    bool padded = output.lengths == Lengths::padded;
    tensor.what = padded ? What::padded : What::packed;
    tensor.varying = varying;
    tensors.push_back(std::move(tensor));
    tensors.push_back(
        {.name = output.name + (padded ? "_lengths" : "_cu_seqlens"),
         .what = padded ? What::lengths : What::offsets,
         .dtype = Dtype::int32,
         .bytes = sizeof(std::int32_t),
         .varying = varying++});
  }
  for (const Output& output : added)
    tensors.push_back({.name = output.name,
                       .what = What::added,
                       .dtype = output.dtype,
                       .row_shape = output.row_shape,
                       .bytes = output.bytes()});
  if (weights)
    tensors.push_back(
        {.name = kWeight, .what = What::weight, .bytes = sizeof(float)});
  return tensors;
}

namespace {

constexpr std::size_t kAlign = 256;  // what vector loads on devices like

/// How many of `tensor.bytes` the tensor holds.
std::size_t count_of(const BatchTensor& tensor, std::size_t rows,
                     std::size_t ranges, std::size_t longest,
                     std::size_t elements) {
  switch (tensor.what) {
    case What::padded:
      return rows * longest;
    case What::packed:
      return elements;
    case What::offsets:
      return ranges + 1;
    default:
      return rows;
  }
}

std::size_t aligned_end(std::size_t offset, std::size_t bytes) {
  return (offset + bytes + kAlign - 1) / kAlign * kAlign;
}

[[noreturn]] void refuse_too_long(const BatchTensor& tensor, const Plan& plan,
                                  std::int64_t elements) {
  throw Error(ErrorKind::transform,
              {.code = "data.too_long",
               .what = "a batch has more elements than a tensor of lengths can "
                       "count",
               .where = "tensor '" + tensor.name + "', epoch " +
                        std::to_string(plan.at.epoch) + ", step " +
                        std::to_string(plan.at.step),
               .why = "found " + std::to_string(elements) +
                      " elements, at most 2147483647 are possible",
               .next = "lower 'loader.batch_size', or leave out the "
                       "longest samples"});
}

/// Where each range's elements go: after those of the ranges before it.
void place(const BatchTensor& tensor, const Plan& plan,
           BatchLayout::Varying& of) {
  of.longest = of.elements = 0;
  std::size_t range = 0;
  for (std::int32_t end : plan.bin_ends) {
    std::int64_t in_row = 0;
    for (; range < static_cast<std::size_t>(end); ++range)
      in_row += of.lengths[range];
    of.longest = std::max(of.longest, in_row);
    of.elements += in_row;
  }
  std::int64_t all = tensor.what == What::padded
                         ? of.longest * std::ssize(plan.bin_ends)
                         : of.elements;
  if (of.elements > std::numeric_limits<std::int32_t>::max())
    refuse_too_long(tensor, plan, all);
  range = 0;
  std::int64_t at = 0;
  for (std::size_t row = 0; row < plan.bin_ends.size(); ++row) {
    if (tensor.what == What::padded)
      at = static_cast<std::int64_t>(row) * of.longest;
    for (; range < static_cast<std::size_t>(plan.bin_ends[row]); ++range) {
      of.starts[range] = at;
      at += of.lengths[range];
    }
  }
}

}  // namespace

void measure(const Dataset& dataset, const std::vector<BatchTensor>& tensors,
             const Plan& plan, BatchLayout& layout) {
  const std::size_t rows = plan.bin_ends.size(), ranges = plan.ranges.size();
  layout.offsets.resize(tensors.size());
  layout.bytes = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const BatchTensor& tensor = tensors[t];
    std::size_t longest = 0, elements = 0;
    if (tensor.what == What::padded || tensor.what == What::packed) {
      if (layout.varying.size() <= tensor.varying)
        layout.varying.resize(tensor.varying + 1);
      BatchLayout::Varying& of = layout.varying[tensor.varying];
      of.lengths.resize(ranges);
      of.starts.resize(ranges);
      dataset.lengths(tensor.varying, plan.ranges, of.lengths);
      place(tensor, plan, of);
      longest = static_cast<std::size_t>(of.longest);
      elements = static_cast<std::size_t>(of.elements);
    } else if (tensor.what == What::rows && ranges != rows) {
      throw Error(
          ErrorKind::request,
          {.code = "data.packed_rows",
           .what = "cannot pack samples into bins",
           .where = "tensor '" + tensor.name + "'",
           .why = "it holds one row for each sample, and a bin has several",
           .next = "pack only fields whose samples differ in length"});
    }
    layout.offsets[t] = layout.bytes;
    layout.bytes = aligned_end(
        layout.bytes,
        tensor.bytes * count_of(tensor, rows, ranges, longest, elements));
  }
}

Shape shape_of(const BatchTensor& tensor, const BatchLayout& layout,
               const Plan& plan) {
  std::int64_t rows = std::ssize(plan.bin_ends);
  Shape shape{rows};
  if (tensor.what == What::padded)
    shape.push_back(layout.varying[tensor.varying].longest);
  if (tensor.what == What::packed)
    shape[0] = layout.varying[tensor.varying].elements;
  if (tensor.what == What::offsets) shape[0] = std::ssize(plan.ranges) + 1;
  shape.insert(shape.end(), tensor.row_shape.begin(), tensor.row_shape.end());
  return shape;
}

std::size_t most_bytes(const std::vector<BatchTensor>& tensors,
                       std::span<const std::int32_t> longest,
                       std::int64_t rows) {
  auto count = static_cast<std::size_t>(rows);
  std::size_t bytes = 0;
  for (const BatchTensor& tensor : tensors) {
    std::size_t length = tensor.varying < longest.size()
                             ? static_cast<std::size_t>(longest[tensor.varying])
                             : 0;
    bytes = aligned_end(bytes, tensor.bytes * count_of(tensor, count, count,
                                                       length, count * length));
  }
  return bytes;
}

}  // namespace penstock
