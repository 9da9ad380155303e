#include "penstock/dataset/dataset_facts.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {

const Json& FittedFields::statistics_of(const std::string& field) const {
  auto found = std::ranges::find(fields, field, &Field::name);
  PENSTOCK_ASSERT(found != fields.end(), "a field has this name");
  return statistics[static_cast<std::size_t>(found - fields.begin())];
}

}  // namespace penstock
