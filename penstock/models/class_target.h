#pragma once

#include <string>
#include <vector>

#include "penstock/models/model.h"

namespace penstock {

/// Throws Error(request) where the target of a model is a category with
/// `one_hot`.
void check_not_one_hot(const Spec& section, const Field& target);

/// Throws Error(request) where the setting `target` of a model names no
/// category and no multi_hot field, or one with `one_hot`.
void check_class_target(const Spec& section, const std::string& name,
                        const std::vector<Field>& fields);

/// The metrics of a classifier of this target: a category, a multi_hot field or
/// a column of dtype bool. `balance`: also those that count each class once.
std::vector<std::string> class_metric_names(const Field& target, bool balance);

/// ModelKind::switches of a classifier of pictures or spectrograms.
std::vector<std::string> class_switches();

}  // namespace penstock
