#include "penstock/trainer/halves.h"

#include <optional>

namespace penstock {
namespace {

/// The peak of a step of `rows` rows, `each` at once; none where it does not
/// fit, or the model cannot learn from so few.
std::optional<std::int64_t> bytes_of(StepMemory& memory, std::int64_t rows,
                                     std::int64_t each) try {
  memory.use_micro_batch(each);
  return memory.try_step(rows).total();
} catch (const Error& error) {
  if (error.kind() == ErrorKind::internal) throw;
  return std::nullopt;
}

}  // namespace

bool halves_take_less(StepMemory& memory, std::int64_t rows) {
  const std::int64_t micro = memory.micro_batch();
  std::optional<std::int64_t> whole, halves;
  for (; rows >= 2 && !whole; rows /= 2) {
    whole = bytes_of(memory, rows, rows);
    if (whole) halves = bytes_of(memory, rows, rows / 2);
  }
  memory.use_micro_batch(micro);
  return !whole || (halves && *halves < *whole);
}

}  // namespace penstock
