#include "penstock/session/memory_estimate.h"

#include <algorithm>
#include <cmath>

#include "penstock/session/not_finite.h"

namespace penstock {
namespace {

constexpr std::int64_t kFew = 8;  // rows that need no line

struct Probe {
  std::int64_t rows = 0;
  MemoryByOwner bytes;
};

/// The largest of `rows`, half of them, a quarter... that fits.
Probe probe(StepMemory& memory, std::int64_t rows) {
  for (;; rows /= 2) try {
      return {rows, memory.try_step(rows)};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory || rows == 1) throw;
    }
}

/// nullopt: the model cannot learn from so few rows, as batch normalisation
/// cannot from a single value per channel.
std::optional<Probe> probe_fewer(StepMemory& memory, std::int64_t rows) try {
  return probe(memory, rows);
} catch (const Error& error) {
  if (error.parts().code != kNotFinite) throw;
  return std::nullopt;
}

}  // namespace

// The line goes through sizes near the batch: few rows may take other
// algorithms, with other scratch memory, than many.
std::optional<MemoryEstimate> estimate_memory(Stepper& stepper,
                                              std::int64_t rows) {
  StepMemory* memory = stepper.memory();
  if (memory == nullptr) return std::nullopt;
  // Two slices: from there on, more add nothing to the peak.
  const std::int64_t slice = memory->micro_batch();
  const std::int64_t most = slice < rows / 2 ? 2 * slice : rows;
  const bool whole = most < rows || most <= kFew;
  const Probe more =
      probe(*memory, whole ? most : std::max<std::int64_t>(1, most / 2));
  MemoryEstimate estimate{.rows = rows, .bytes = more.bytes};
  if (more.rows == 1) return estimate;
  const std::optional<Probe> fewer = probe_fewer(*memory, more.rows / 2);
  if (!fewer) return estimate;
  const Probe& less = *fewer;
  const auto each = [](const Probe& of) {
    return static_cast<double>(of.bytes.activations);
  };
  estimate.per_row =
      std::max(0.0, (each(more) - each(less)) /
                        static_cast<double>(more.rows - less.rows));
  const std::int64_t further = most - more.rows;
  estimate.bytes.activations += static_cast<std::int64_t>(
      std::llround(static_cast<double>(further) * estimate.per_row));
  return estimate;
}

std::int64_t batch_bytes(const Job& job, const DatasetFacts& rows) {
  std::size_t bytes = ring_bytes(loader_options(job, Side::train), rows).device;
  if (rows.on_side[static_cast<std::size_t>(Side::val)] > 0)
    bytes += ring_bytes(validation_options(job), rows).device;
  return static_cast<std::int64_t>(bytes);
}

void add_data(MemoryEstimate& estimate, const Job& job, const Dataset& rows,
              const Device& device) {
  if (device.memory_kind() != MemoryKind::cpu)
    estimate.cache = static_cast<std::int64_t>(rows.plan().device_bytes());
  estimate.look_ahead = batch_bytes(job, rows.facts());
}

std::string memory_line(const MemoryEstimate& estimate) {
  auto shown = [](std::int64_t bytes) {
    return shown_bytes(static_cast<std::size_t>(bytes));
  };
  const MemoryByOwner& bytes = estimate.bytes;
  return "memory of the model: parameters " + shown(bytes.parameters) +
         ", gradients " + shown(bytes.gradients) + ", optimizer " +
         shown(bytes.optimizer) + ", activations of " +
         std::to_string(estimate.rows) + " rows about " +
         shown(bytes.activations) +
         (estimate.cache > 0 ? ", cached rows " + shown(estimate.cache) : "") +
         (estimate.look_ahead > 0
              ? ", batches at most " + shown(estimate.look_ahead)
              : "") +
         ": about " + shown(estimate.total()) + " in total";
}

Json json_of(const MemoryEstimate& estimate) {
  Json json;
  json["parameters"] = estimate.bytes.parameters;
  json["gradients"] = estimate.bytes.gradients;
  json["optimizer"] = estimate.bytes.optimizer;
  json["activations"] = estimate.bytes.activations;
  json["cache"] = estimate.cache;
  json["look_ahead"] = estimate.look_ahead;
  json["total"] = estimate.total();
  json["per_row"] = estimate.per_row;
  json["rows"] = estimate.rows;
  return json;
}

}  // namespace penstock
