#include "penstock/dataset/dataset_facts.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {

const Json& FittedFields::statistics_of(const std::string& field) const {
  auto found = std::ranges::find(fields, field, &Field::name);
  PENSTOCK_ASSERT(found != fields.end(), "a field has this name");
  return statistics[static_cast<std::size_t>(found - fields.begin())];
}

std::vector<ColumnInfo> columns_of(const std::vector<Field>& fields,
                                   const Schema& schema) {
  std::vector<ColumnInfo> columns;
  for (const Field& field : fields)
    for (const ColumnRequest& request : field.kind->facts().columns) {
      const ColumnInfo* found = schema.find(request.column);
      if (found != nullptr &&
          std::ranges::find(columns, found->name, &ColumnInfo::name) ==
              columns.end())
        columns.push_back(*found);
    }
  return columns;
}

}  // namespace penstock
