#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/sources/source.h"
#include "penstock/sources/spec.h"

namespace penstock {

/// The type that `as` gives a column, whatever the source says of it. A key and
/// a value have their own: nullopt.
std::optional<ColumnType> type_given_by(ReadAs as);

/// The column `name` of `place` ("measurements in train.sqlite"), or
/// Error(request): with the reason of one that is left out, else with the
/// nearest one. `setting` is the one that requested it.
const ColumnInfo& column_of(const Schema& schema, const std::string& name,
                            const std::string& setting,
                            const std::string& place);

/// Error(request): the source refuses `spec.where`. What to try is to use the
/// table's own columns, or the one that is nearest to a name that it does not
/// know.
Error condition_error(const SourceSpec& spec, const Schema& schema,
                      std::string why, const std::string& unknown_name = "");

/// Sets the primary key: its columns by their places in it.
void set_primary_key(const std::map<int, std::string>& key, Schema& schema);

/// The columns that `key` names or, when that is empty, those of the primary
/// key; none where there is no such key.
std::vector<const ColumnInfo*> key_columns(const Schema& schema,
                                           const std::vector<std::string>& key,
                                           const std::string& place);

/// Throws Error(request): the rows of `place` have no key, and `why`.
[[noreturn]] void refuse_no_key(const std::string& place, std::string why);

}  // namespace penstock
