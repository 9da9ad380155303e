#include "penstock/sources/pandas_index.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/json.h"

namespace penstock {

PandasIndex::PandasIndex(std::string_view metadata) {
  if (metadata.empty()) return;
  try {
    const Json pandas = Json::parse(std::string(metadata), "pandas");
    const Json* index =
        pandas.is_object() ? pandas.find("index_columns") : nullptr;
    if (index == nullptr || !index->is_array()) return;
    // The numbers of the rows alone are an object, and no column.
    for (const Json& one : index->array())
      if (one.is_string()) names_.push_back(one.string());
  } catch (const Error&) {
    return;  // nothing that we know
  }
}

std::string PandasIndex::of(std::string_view column) const {
  return column.starts_with("__index_level_") ||
                 std::ranges::find(names_, column) != names_.end()
             ? "the index that pandas wrote"
             : "";
}

}  // namespace penstock
