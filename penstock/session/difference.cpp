#include "penstock/session/difference.h"

namespace penstock {
namespace {

Json names_of(const Json& object) {
  Json names{Json::Array{}};
  for (const auto& [name, value] : object.object()) names.push_back(name);
  return names;
}

}  // namespace

std::optional<Difference> first_difference(const Json& found, const Json& made,
                                           const std::string& path) {
  if (found == made) return std::nullopt;
  if (!found.is_object() || !made.is_object())
    return Difference{path, found, made};
  for (const auto& [name, value] : made.object()) {
    const Json* other = found.find(name);
    if (other == nullptr) return Difference{path + "." + name, Json(), value};
    if (auto inside = first_difference(*other, value, path + "." + name))
      return inside;
  }
  for (const auto& [name, value] : found.object())
    if (made.find(name) == nullptr)
      return Difference{path + "." + name, value, Json()};
  return Difference{path, names_of(found), names_of(made)};
}

}  // namespace penstock
