#pragma once

#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/transforms/field_kind.h"

namespace penstock {

/// Checks a `fields` section, in its order. Throws Error(request) with the
/// JSON path; at least one field is needed.
std::vector<Field> parse_fields(const Json& section, const std::string& path);
/// The JSON Schema of that section.
Json fields_schema();

/// The tensors of a batch of all fields, in field order.
std::vector<Output> outputs_of(const std::vector<Field>& fields);

/// How a stored row of all fields looks: their tensors in field order.
RowLayout layout_of(const std::vector<Field>& fields);

/// The columns that fields read, each once, in order of first use: the first
/// that asks gives its setting.
std::vector<ColumnRequest> requests_of(const std::vector<Field>& fields);

/// Of the same, what decides the stored rows.
Json stored_recipes_of(const std::vector<Field>& fields);
/// What would spare work where rows are finished: what the kinds say, with the
/// fields' names; empty: nothing.
std::string cheaper(const std::vector<Field>& fields);
/// A field's recipe by its name, in field order: {"receivers": {...}, ...}.
Json recipes_of(const std::vector<Field>& fields);

}  // namespace penstock
