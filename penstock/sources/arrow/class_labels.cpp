#include "penstock/sources/arrow/class_labels.h"

#include <algorithm>
#include <set>
#include <utility>

#include "penstock/base/utf8.h"

namespace penstock::arrow_files {

const Json* member(const Json* of, std::string_view name) {
  return of != nullptr && of->is_object() ? of->find(name) : nullptr;
}

std::vector<std::string> usable(std::vector<std::string> classes) {
  const std::set<std::string_view> different(classes.begin(), classes.end());
  if (different.size() != classes.size() ||
      !std::ranges::all_of(classes, is_utf8))
    classes.clear();
  return classes;
}

std::vector<std::string> names_of_labels(
    const Json* features, const std::vector<std::string>& names) {
  for (const std::string& name : names) features = member(features, name);
  const Json* type = member(features, "_type");
  const Json* listed = member(features, "names");
  if (type == nullptr || *type != Json("ClassLabel") || listed == nullptr ||
      !listed->is_array())
    return {};
  std::vector<std::string> classes;
  for (const Json& name : listed->array()) {
    if (!name.is_string()) return {};
    classes.push_back(name.string());
  }
  return usable(std::move(classes));
}

}  // namespace penstock::arrow_files
