#include "penstock/dataset/batch_layout.h"

#include <algorithm>
#include <limits>

// A batch is one piece of memory. First what is copied to the device: the
// tensors that the host fills, then the stored rows that the device finishes;
// behind it the tensors that are made there. Each begins at a multiple of 256
// bytes. measure() finds the sizes of one plan, most_bytes() the largest there
// can be; both walk through the tensors in the same order.
//
// Outputs that share their lengths are placed once, by the first of them. A
// packed tensor puts the ranges one behind the other; a padded one gives each
// row the room of the batch's longest. Both count in elements, 2^31 - 1 at
// most.

namespace penstock {

using What = BatchTensor::What;

void Dataset::lengths(std::size_t, std::span<const SampleRange>,
                      std::span<std::int32_t>) const {
  PENSTOCK_ASSERT(false, "a data set whose samples differ knows their lengths");
}

std::vector<BatchTensor> batch_tensors(const DatasetFacts& facts, Side side,
                                       bool weights,
                                       const std::vector<Output>& added) {
  const std::vector<DeviceField>& on_device = facts.device_fields_of(side);
  std::vector<BatchTensor> tensors;
  std::size_t varying = 0;
  for (std::size_t o = 0; o < facts.outputs.size(); ++o) {
    const Output& output = facts.outputs[o];
    BatchTensor tensor{.name = output.name,
                       .dtype = output.dtype,
                       .row_shape = output.row_shape,
                       .bytes = output.bytes(),
                       .queued = std::ranges::any_of(
                           on_device,
                           [&](const DeviceField& field) {
                             return o - field.first_output < field.outputs;
                           }),
                       .shares = output.shares,
                       .padding = output.padding};
    if (output.lengths == Lengths::equal) {
      tensors.push_back(std::move(tensor));
      continue;
    }
    const bool padded = output.lengths == Lengths::padded;
    tensor.what =
        output.lengths == Lengths::packed ? What::packed : What::padded;
    if (!output.shares) ++varying;
    tensor.varying = varying - 1;
    tensors.push_back(std::move(tensor));
    if (output.shares) continue;
    const char* ending = padded ? "_lengths" : "_cu_seqlens";
    tensors.push_back(
        {.name = output.beside.empty() ? output.name + ending : output.beside,
         .what = padded ? What::lengths : What::offsets,
         .dtype = Dtype::int32,
         .bytes = sizeof(std::int32_t),
         .varying = varying - 1});
  }
  for (const Output& output : added)
    tensors.push_back({.name = output.name,
                       .what = What::added,
                       .dtype = output.dtype,
                       .row_shape = output.row_shape,
                       .bytes = output.bytes(),
                       .queued = !on_device.empty()});
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
                      " elements, but at most 2147483647 are possible",
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

/// Finds the lengths of the `varying`-th of what differs in length, and places
/// its elements as in `tensor`; runs of `roomy` elements or fewer have room for
/// `longest`.
void place_varying(const Dataset& dataset, std::size_t varying,
                   const BatchTensor& tensor, const Plan& plan,
                   BatchLayout::Varying& of, std::int32_t roomy = 0,
                   std::int32_t longest = 0) {
  of.lengths.resize(plan.ranges.size());
  of.starts.resize(plan.ranges.size());
  dataset.lengths(varying, plan.ranges, of.lengths);
  for (std::int32_t& length : of.lengths)
    if (length > 0 && length <= roomy) length = std::max(length, longest);
  place(tensor, plan, of);
}

/// Adds the tensors that are copied to the device, or those that are made
/// there.
void add_tensors(const Dataset& dataset,
                 const std::vector<BatchTensor>& tensors, bool queued,
                 const Plan& plan, BatchLayout& layout) {
  const std::size_t rows = plan.bin_ends.size(), ranges = plan.ranges.size();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const BatchTensor& tensor = tensors[t];
    if (tensor.queued != queued) continue;
    std::size_t longest = 0, elements = 0;
    if (tensor.what == What::padded || tensor.what == What::packed) {
      if (layout.varying.size() <= tensor.varying)
        layout.varying.resize(tensor.varying + 1);
      BatchLayout::Varying& of = layout.varying[tensor.varying];
      if (!tensor.shares)
        place_varying(dataset, tensor.varying, tensor, plan, of);
      longest = static_cast<std::size_t>(of.longest);
      elements = static_cast<std::size_t>(of.elements);
    } else if (tensor.what == What::rows && ranges != rows) {
      throw Error(ErrorKind::request,
                  {.code = "data.packed_rows",
                   .what = "cannot pack samples into bins",
                   .where = "tensor '" + tensor.name + "'",
                   .why = "the tensor holds one row per sample, and a bin has "
                          "several samples",
                   .next = "pack only fields whose samples differ in length"});
    }
    layout.offsets[t] = layout.bytes;
    layout.bytes = aligned_end(
        layout.bytes,
        tensor.bytes * count_of(tensor, rows, ranges, longest, elements));
  }
}

/// Adds the stored rows that a device finishes.
void add_staged(const Dataset& dataset, const std::vector<DeviceField>& fields,
                const Plan& plan, BatchLayout& layout) {
  layout.staged.resize(fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const DeviceField& field = fields[f];
    BatchLayout::Staged& staged = layout.staged[f];
    staged.rows = layout.bytes;
    layout.bytes =
        aligned_end(layout.bytes, field.row_bytes * plan.ranges.size());
    staged.runs = layout.bytes;
    if (field.element_bytes == 0) continue;
    const BatchTensor run{.name = dataset.outputs()[field.first_output].name,
                          .what = What::packed};
    place_varying(dataset, dataset.facts().longest.size() + field.field, run,
                  plan, staged.lengths, field.roomy_run, field.longest_run);
    layout.bytes = aligned_end(
        layout.bytes, field.element_bytes *
                          static_cast<std::size_t>(staged.lengths.elements));
  }
}

}  // namespace

void measure(const Dataset& dataset, Side side,
             const std::vector<BatchTensor>& tensors, const Plan& plan,
             BatchLayout& layout) {
  const std::vector<DeviceField>& fields =
      dataset.facts().device_fields_of(side);
  layout.offsets.resize(tensors.size());
  layout.bytes = 0;
  add_tensors(dataset, tensors, false, plan, layout);
  std::size_t staged = layout.bytes;
  add_staged(dataset, fields, plan, layout);
  staged = layout.bytes - staged;
  layout.copied = layout.bytes;
  if (!fields.empty()) add_tensors(dataset, tensors, true, plan, layout);
  layout.tensors = layout.bytes - staged;
}

void set_shape(const BatchTensor& tensor, const BatchLayout& layout,
               const Plan& plan, Shape& shape) {
  shape.assign(1, std::ssize(plan.bin_ends));
  if (tensor.what == What::padded)
    shape.push_back(layout.varying[tensor.varying].longest);
  if (tensor.what == What::packed)
    shape[0] = layout.varying[tensor.varying].elements;
  if (tensor.what == What::offsets) shape[0] = std::ssize(plan.ranges) + 1;
  shape.insert(shape.end(), tensor.row_shape.begin(), tensor.row_shape.end());
}

BatchLayout most_bytes(const DatasetFacts& facts, Side side,
                       const std::vector<BatchTensor>& tensors,
                       std::int64_t rows) {
  auto count = static_cast<std::size_t>(rows);
  BatchLayout most;
  auto add = [&](bool queued) {
    for (const BatchTensor& tensor : tensors) {
      if (tensor.queued != queued) continue;
      std::size_t length =
          tensor.varying < facts.longest.size()
              ? static_cast<std::size_t>(facts.longest[tensor.varying])
              : 0;
      most.bytes = aligned_end(
          most.bytes, tensor.bytes * count_of(tensor, count, count, length,
                                              count * length));
    }
  };
  add(false);
  most.tensors = most.bytes;
  for (const DeviceField& field : facts.device_fields_of(side)) {
    most.bytes = aligned_end(most.bytes, count * field.row_bytes);
    most.bytes = aligned_end(most.bytes,
                             count * field.element_bytes *
                                 static_cast<std::size_t>(field.longest_run));
    most.scratch = std::max(most.scratch, count * field.scratch_bytes);
  }
  most.copied = most.bytes;
  add(true);
  most.tensors += most.bytes - most.copied;
  return most;
}

}  // namespace penstock
