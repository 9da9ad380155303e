#include "penstock/base/columns.h"

#include <algorithm>

namespace penstock {

const ColumnInfo* Schema::find(std::string_view name) const {
  auto found = std::ranges::find(columns, name, &ColumnInfo::name);
  return found == columns.end() ? nullptr : &*found;
}

}  // namespace penstock
