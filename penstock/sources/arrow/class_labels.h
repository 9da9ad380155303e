#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"

namespace penstock::arrow_files {

/// Null where `of` is null, is no object, or has no such member.
const Json* member(const Json* of, std::string_view name);

/// As ColumnInfo has them; none where they cannot be classes.
std::vector<std::string> usable(std::vector<std::string> classes);

/// What the `features` of a data set of Hugging Face say of a column, "b" in
/// "a" by its `names`: of a ClassLabel the names of its classes, by number.
std::vector<std::string> names_of_labels(const Json* features,
                                         const std::vector<std::string>& names);

}  // namespace penstock::arrow_files
