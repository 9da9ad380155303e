#pragma once

#include <functional>

#include "penstock/base/json.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// The columns of the rows that a `source` section names. Called only where a
/// short form depends on what a column holds.
using SchemaOfSource = std::function<Schema(const Json& source)>;

/// The settings of a job with each short form written out:
///
///     "source": "t.csv"     {"kind": "csv", "path": "t.csv", ...}
///     "x": ["a", "b"]       {"columns": ["a", "b"]}
///     "y": "species"        {"category": {"column": "species"}} where the
///                           column holds text, else {"columns": ["species"]}
///     {"array": {"column": "x"}}  with the "shape" of the column, where its
///                           source declares one
///
/// also in the entries of `sources`, of which the first decides what the job's
/// own `fields` hold. What is not in short form is returned unchanged, whether
/// it is valid or not. Throws what `schema_of` throws, and Error(request) for a
/// text that does not name a source.
Json written_out(const Json& document, const SchemaOfSource& schema_of);

/// Reads the schema of a `source` section.
Schema schema_of_section(const Json& source);

}  // namespace penstock
