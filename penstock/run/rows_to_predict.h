#pragma once

#include <memory>
#include <vector>

#include "penstock/session/session.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// Whether the source has all columns of a field.
bool has_columns(const Schema& schema, const Field& field);

/// Whether its columns have the types that their values look like.
bool guesses_types(const SourceSpec& spec);

/// By keys where the rows have such, else by their numbers. The fields are
/// fitted.
std::unique_ptr<Source> open_rows_of(const SourceSpec& spec,
                                     const std::vector<Field>& fields,
                                     StopFlag stop);

}  // namespace penstock
