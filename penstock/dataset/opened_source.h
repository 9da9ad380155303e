#pragma once

#include <memory>

#include "penstock/cache/cache.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// What opening a source has found out: it is kept in the store of its rows, so
/// that these can be used when the source cannot be opened any more. Null of a
/// source that the caller opens himself.
Json opened_json(const RowsRecipe& recipe, const Source& source);

/// Identifies the source that a job names, and the columns that it requests of
/// it, whether it can be opened or not: opened_json()["asked"]. Empty where the
/// caller opens it himself.
std::string asked_of_source(const RowsRecipe& recipe);

/// A source as it was when its rows were stored, without a row to read: that is
/// the Error(source) source.gone, with `why` it cannot be opened. The store's
/// document holds opened_json().
std::unique_ptr<Source> source_of_store(const Store& store, std::string why);

}  // namespace penstock
