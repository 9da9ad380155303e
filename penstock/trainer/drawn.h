#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "penstock/loader/loader.h"

namespace penstock {

/// The rows of a batch, and how numbers that are drawn for them get to where
/// the model computes: by `staging`, queued on `stream`. On the cpu neither is
/// used.
struct DrawnFor {
  std::int64_t epoch = 0;
  std::span<const SampleId> ids;
  Staging& staging;
  Stream& stream;
};

/// Writes the numbers of one row.
using DrawRow = std::function<void(Random& random, std::span<float> numbers)>;

/// [rows, numbers], float32, where `like` is: drawn on the host, by the same
/// code for all devices. A row's numbers depend on the seed, the epoch, its
/// sample and `purpose` alone, so that a step is the same whenever it is taken.
at::Tensor drawn(const at::Tensor& like, std::int64_t numbers,
                 std::uint64_t seed, const DrawnFor& rows,
                 std::uint64_t purpose, const DrawRow& draw);

}  // namespace penstock
