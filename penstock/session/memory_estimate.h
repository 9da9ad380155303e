#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/job/job.h"
#include "penstock/session/stepper.h"

namespace penstock {

/// What a step of `rows` rows takes at its peak.
struct MemoryEstimate {
  std::int64_t rows = 0;
  MemoryByOwner bytes;
  double per_row = 0;           ///< bytes that one row more takes
  std::int64_t cache = 0;       ///< bytes of rows that are kept on the device
  std::int64_t look_ahead = 0;  ///< bytes of batches on the device
  std::int64_t total() const { return bytes.total() + cache + look_ahead; }
};

/// Runs a quarter and half of the rows (see StepMemory::try_step()), or fewer
/// where memory is short, and continues the line through both. Few rows are
/// all run, and so are two micro-batches. nullopt: this model's memory is not
/// known. Throws Error(out_of_memory) where one row does not fit.
std::optional<MemoryEstimate> estimate_memory(Stepper& stepper,
                                              std::int64_t rows);

/// "memory of the model: parameters 1.2 MiB, ...": for people.
std::string memory_line(const MemoryEstimate& estimate);
/// "parameters", "gradients", "optimizer", "activations", "cache",
/// "look_ahead", "total", "per_row" and "rows".
Json json_of(const MemoryEstimate& estimate);

/// Bytes of the device that the batches of a job take: those ahead of its
/// training, and those of its validation.
std::int64_t batch_bytes(const Job& job, const DatasetFacts& rows);
/// Adds what rows and batches take of the device.
void add_data(MemoryEstimate& estimate, const Job& job, const Dataset& rows,
              const Device& device);

}  // namespace penstock
