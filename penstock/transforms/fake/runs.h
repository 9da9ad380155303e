#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/transforms/json_set/key_types.h"
#include "penstock/transforms/transforms.h"

namespace penstock {

/// Fields over blocks whose numbers are float64, or int64 where they keep
/// their bits, for tests. `booleans[f][c]` marks columns that the source calls
/// boolean; `other_types` are those of columns by name.
inline std::vector<std::shared_ptr<const BoundField>> bound_to_float64(
    const std::vector<Field>& fields,
    const std::vector<std::vector<bool>>& booleans = {},
    const std::map<std::string, ColumnType>& other_types = {}) {
  std::vector<ColumnRequest> all = requests_of(fields);
  std::vector<std::shared_ptr<const BoundField>> bound;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    FieldColumns columns;
    for (const ColumnRequest& request : fields[f].kind->facts().columns) {
      auto found =
          std::ranges::find(all, request.column, &ColumnRequest::column);
      std::size_t c = columns.info.size();
      bool boolean =
          f < booleans.size() && c < booleans[f].size() && booleans[f][c];
      columns.info.push_back({.name = request.column, .boolean = boolean});
      auto other = other_types.find(request.column);
      columns.types.push_back(other != other_types.end()  ? other->second
                              : found->as == ReadAs::json ? ColumnType::json
                              : found->as == ReadAs::integer
                                  ? ColumnType::int64
                                  : ColumnType::float64);
      columns.at.push_back(static_cast<std::size_t>(found - all.begin()));
    }
    bound.push_back(fields[f].kind->bind(std::move(columns)));
  }
  return bound;
}

/// The part of each field of a run of float64 that holds all fields' values.
inline std::vector<std::span<const double>> parts_of_run(
    const std::vector<Field>& fields, std::span<const double> run) {
  std::vector<std::span<const double>> parts;
  for (const Field& field : fields) {
    const FieldFacts& facts = field.kind->facts();
    const std::size_t size = facts.set ? 1 + static_cast<std::size_t>(run[0]) *
                                                 facts.set->keys.size()
                                       : facts.numbers->columns.size();
    parts.push_back(run.first(size));
    run = run.subspan(size);
  }
  return parts;
}

/// What a json_set's parsers noticed of each key.
inline const std::vector<KeyTypes::Key>& key_types_in(const FieldNotes& notes) {
  return static_cast<const KeyTypes&>(notes).keys;
}

}  // namespace penstock
