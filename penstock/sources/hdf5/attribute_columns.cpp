#include "penstock/sources/hdf5/attribute_columns.h"

#include <algorithm>

#include "penstock/sources/hdf5/pytables.h"

namespace penstock::hdf5 {
namespace {

/// Of an attribute that is a list of numbers: a tensor in each row.
RowColumn constants(const std::string& name, const Json& value) {
  RowColumn column;
  column.from = RowColumn::From::constants;
  column.values.push_back(value);
  const Dtype dtype = is_whole(value) ? Dtype::int64 : Dtype::float64;
  column.plan.name = name;
  column.plan.column = ColumnType::tensor(dtype);
  column.plan.item = {std::ssize(value.array())};
  column.plan.declared = std::string(name_of(dtype)) +
                         text_of(Shape(column.plan.item)) + " (an attribute)";
  column.column = file_column(column.plan);
  return column;
}

}  // namespace

files::FileColumn file_column(const ValuePlan& plan) {
  files::FileColumn column{.name = plan.name,
                           .declared = plan.declared,
                           .type = plan.column,
                           .item_varies = true};
  if (plan.column.kind == ColumnKind::number) column.values = plan.type.names;
  if (plan.column.kind == ColumnKind::fixed)
    column.item = Shape(plan.item.begin(), plan.item.end());
  return column;
}

bool is_whole(const Json& value) {
  return value.is_array() ? std::ranges::all_of(value.array(), is_whole)
                          : std::holds_alternative<std::int64_t>(value.value());
}

RowColumn constant(const std::string& name, const Json& value) {
  if (value.is_array()) return constants(name, value);
  RowColumn column;
  column.from = RowColumn::From::constants;
  column.values.push_back(value);
  const bool text = value.is_string();
  const bool whole = std::holds_alternative<std::int64_t>(value.value());
  column.plan.column = text    ? ColumnType::text
                       : whole ? ColumnType::int64
                               : ColumnType::float64;
  column.plan.name = name;
  column.plan.declared = std::string(text    ? "text"
                                     : whole ? "int64"
                                             : "float64") +
                         " (an attribute)";
  column.column = file_column(column.plan);
  return column;
}

// Attributes that libraries write for themselves: of dimension scales, images
// and palettes (the HDF5 High Level specifications, which mark them by CLASS),
// of netCDF-4, whose own names begin with "_" (_NCProperties, _Netcdf4Dimid),
// and of MATLAB 7.3. As columns they would be the same text in each row.
bool is_technical(const std::string& name, const Json& all) {
  if (is_of_pytables(name, all)) return true;
  if (name == "CLASS" || name == "NAME") {
    const Json* kind = all.find("CLASS");
    return kind != nullptr &&
           (*kind == Json("DIMENSION_SCALE") || *kind == Json("IMAGE") ||
            *kind == Json("PALETTE"));
  }
  return name.starts_with("_") || name.starts_with("MATLAB_") ||
         name.starts_with("H5PATH") || name == "DIMENSION_LABELS" ||
         name == "DIMENSION_LIST" || name == "REFERENCE_LIST";
}

LeftOutColumn not_read(const std::string& name, std::string why) {
  return {name, std::move(why), "write it as a data set with as many rows"};
}

void add_constants(const Json* attributes, const std::string& prefix,
                   RowColumns& to) {
  if (attributes == nullptr) return;
  for (const auto& [name, value] : attributes->object()) {
    if (is_technical(name, *attributes)) continue;
    if (value.is_object())
      to.refused.push_back(
          not_read(prefix + "@" + name, value.find("why")->string()));
    else
      to.columns.push_back(constant(prefix + "@" + name, value));
  }
}

}  // namespace penstock::hdf5
