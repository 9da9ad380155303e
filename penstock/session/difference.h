#pragma once

#include <optional>
#include <string>

#include "penstock/base/base.h"

namespace penstock {

/// Where two documents differ.
struct Difference {
  std::string path;  ///< "fields.receivers.json_set.max"
  Json found, made;  ///< what stands there in each; null: nothing
};

/// The first difference between what was found and what a run was made with;
/// nullopt if none exists. Two objects of the same members in another order
/// differ: the lists of their names are shown then.
std::optional<Difference> first_difference(const Json& found, const Json& made,
                                           const std::string& path);

}  // namespace penstock
