#pragma once

#include <functional>
#include <string>
#include <vector>

#include "penstock/job/job.h"

namespace penstock {

/// What the classes of a field of these rows stand for, as class_names() has
/// it; of mixed sources those of all together. Throws Error(request), code
/// fields.no_classes, with the fields that have classes.
std::vector<Json> classes_of(const std::string& field, const Dataset& rows);

/// Says which rows are of an unknown class, in one line to `note`, or to the
/// log where that is empty: those of the model's target, or, where the job does
/// not say what its target is, of all categories.
void tell_unknown_class(const Job& job, const Dataset& rows,
                        const std::function<void(const std::string&)>& note);

}  // namespace penstock
