#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/dataset/dataset_base.h"

namespace penstock {

/// A tensor of a batch: an output of the data set, or one that says how long
/// the samples are, or what is padding.
struct BatchTensor {
  enum class What : std::uint8_t {
    rows,     ///< [rows, ...]
    padded,   ///< [rows, longest, ...]
    packed,   ///< [elements, ...]
    lengths,  ///< int32 [rows]: NAME_lengths, beside a padded one
    offsets,  ///< int32 [ranges + 1]: NAME_cu_seqlens, beside a packed one
    added,    ///< [rows, ...], by what is done to the whole batch
    weight,   ///< float32 [rows]: 0 for padding, else 1
  };
  std::string name;
  What what = What::rows;
  Dtype dtype = Dtype::float32;
  Shape row_shape;           ///< of a row, or of an element
  std::size_t bytes = 0;     ///< of a row, or of an element
  std::size_t varying = 0;   ///< which of the outputs whose lengths differ
  bool queued = false;       ///< made on the device, not copied there
  bool shares = false;       ///< its elements are where the one before has its
  std::int64_t padding = 0;  ///< what stands where no sample does
};

/// The tensor that marks rows, 1, and padding, 0.
inline constexpr const char* kWeight = "weight";

/// The tensors of a batch: the outputs in their order, each followed by the one
/// that says how long its samples are, then those that are `added`.
std::vector<BatchTensor> batch_tensors(const DatasetFacts& facts, Side side,
                                       bool weights,
                                       const std::vector<Output>& added = {});

/// Where a batch's tensors are in the memory of its slot. Kept from batch to
/// batch, so that it allocates nothing once warm.
struct BatchLayout {
  /// The elements of an output whose lengths differ.
  struct Varying {
    std::vector<std::int32_t> lengths;  ///< by range
    std::vector<std::int64_t> starts;   ///< by range, in elements
    std::int64_t longest = 0;           ///< of a row
    std::int64_t elements = 0;          ///< of all rows
  };
  /// Stored rows on their way to a device that finishes them.
  struct Staged {
    std::size_t rows = 0, runs = 0;  ///< offsets
    Varying lengths;                 ///< of the runs
  };
  std::vector<std::size_t> offsets;  ///< of each tensor
  std::vector<Varying> varying;
  std::vector<Staged> staged;  ///< by field that a device finishes
  std::size_t bytes = 0;       ///< of all this
  std::size_t tensors = 0;     ///< of these, those of the tensors
  std::size_t copied = 0;      ///< the first of these: not made on the device
  std::size_t scratch = 0;     ///< on the device behind them, for queued work
};

/// Finds out how large a batch is. A pure function of the plan, whose ranges
/// hold ids, and of the kept lengths. Throws Error(request) where a bin of
/// several ranges meets a tensor of one size for each row, and
/// Error(transform), code data.too_long, where a batch has 2^31 elements.
void measure(const Dataset& dataset, Side side,
             const std::vector<BatchTensor>& tensors, const Plan& plan,
             BatchLayout& layout);

/// Makes `shape` that of a tensor in a batch that was measured, in the memory
/// that it has.
void set_shape(const BatchTensor& tensor, const BatchLayout& layout,
               const Plan& plan, Shape& shape);

/// How large a batch of so many rows is, each as long as the longest: `bytes`,
/// `copied` and, for what a device finishes, `scratch`.
BatchLayout most_bytes(const DatasetFacts& facts, Side side,
                       const std::vector<BatchTensor>& tensors,
                       std::int64_t rows);

}  // namespace penstock
