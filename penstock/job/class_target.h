#pragma once

#include <string>
#include <vector>

#include "penstock/job/model.h"

namespace penstock {

/// Throws Error(request) where the setting `target` of a model names no
/// category and no multi_hot field.
void check_class_target(const Spec& section, const std::string& name,
                        const std::vector<Field>& fields);

}  // namespace penstock
