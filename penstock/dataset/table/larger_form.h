#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// A field that keeps more of each row than another one, and finishes it with
/// less work.
struct LargerForm {
  Field field;  ///< which makes its runs of parsed values, or of the other's
  std::string setting;  ///< that makes it, as in a job
  bool same_bytes;      ///< in batches

  std::string shown() const {
    return "field '" + field.name + "' as " + setting + " has it";
  }
};

/// That of a field, as its kind says it; nullopt: none, or it is that
/// already.
std::optional<LargerForm> larger_form(const Field& field);

/// What a thread holds on the host that finishes a row, beside the batch, where
/// the row's run in the larger form has so many bytes: that is made of it, and
/// what making it takes is about as much again.
constexpr std::size_t finishing_bytes(std::size_t larger_run) {
  return 2 * larger_run;
}
/// Says what so many threads hold, for a plan.
std::string finishing_note(std::size_t bytes, int threads);

}  // namespace penstock
