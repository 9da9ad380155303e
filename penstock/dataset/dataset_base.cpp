#include "penstock/dataset/dataset_base.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {

const Json& FittedDataset::statistics_of(const std::string& field) const {
  auto found = std::ranges::find(fields(), field, &Field::name);
  PENSTOCK_ASSERT(found != fields().end(), "a field has this name");
  return field_statistics()[static_cast<std::size_t>(found - fields().begin())];
}

}  // namespace penstock
