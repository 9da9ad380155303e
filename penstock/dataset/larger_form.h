#pragma once

#include <optional>
#include <string>

#include "penstock/transforms/transforms.h"

namespace penstock {

/// A field that keeps more of each row than another one, and finishes it with
/// less work.
struct LargerForm {
  Field field;
  std::string setting;  ///< that makes it, as in a job
};

/// That of a field, by the setting that the schema of its kind marks "larger";
/// nullopt where there is none, or where it is that already.
std::optional<LargerForm> larger_form(const Field& field);

}  // namespace penstock
