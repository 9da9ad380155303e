#include "penstock/transforms/fields.h"

#include <algorithm>
#include <set>

#include "penstock/base/error.h"
#include "penstock/base/spec.h"
#include "penstock/transforms/prepare.h"

namespace penstock {
namespace {

void refuse_twice(const Spec& spec, std::string_view key,
                  const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      spec.refuse(key, "'" + name + "' is listed twice", "list it once");
}

std::vector<std::string> some_names(Spec& spec, std::string_view key) {
  std::vector<std::string> names = spec.texts(key);
  if (names.empty())
    spec.refuse(key, "it is missing or empty", "list at least one name");
  refuse_twice(spec, key, names);
  return names;
}

JsonSet parse_json_set(Spec spec) {
  JsonSet set;
  set.column = spec.text("column");
  set.keys = some_names(spec, "keys");
  set.max = static_cast<int>(spec.integer("max", {}, 1, 65536));
  set.min = static_cast<int>(spec.integer("min", 1, 0, set.max));
  std::string overflow =
      spec.choice("overflow", "first", {"first", "strongest", "error"});
  set.overflow = overflow == "first"       ? JsonSet::Overflow::first
                 : overflow == "strongest" ? JsonSet::Overflow::strongest
                                           : JsonSet::Overflow::error;
  set.sort_by = spec.text("sort_by", "");
  set.required = spec.texts("required");
  spec.finish();
  bool strongest = set.overflow == JsonSet::Overflow::strongest;
  if (strongest && set.sort_by.empty())
    spec.refuse("sort_by", "it is missing, and overflow is \"strongest\"",
                "name the key to sort by, such as \"" + set.keys[0] + "\"");
  if (!strongest && spec.has("sort_by"))
    spec.refuse("sort_by", "it is there, but overflow is \"" + overflow + "\"",
                "remove it, or set overflow to \"strongest\"");
  return set;
}

Columns parse_columns(Spec& spec, bool standardize) {
  Columns columns;
  columns.columns = some_names(spec, "columns");
  std::string dtype =
      spec.choice("dtype", "float32", {"float32", "float64", "int64"});
  dtype_from(dtype, columns.dtype);
  if (columns.dtype == Dtype::int64 && standardize)
    spec.refuse("standardize", "found true, but dtype is \"int64\"",
                "use float32 or float64, or do not standardise");
  return columns;
}

Field parse_field(const std::string& name, const Json& json,
                  const std::string& path) {
  Spec spec(json, path.empty() ? name : path + "." + name);
  Field field{.name = name};
  field.standardize = spec.boolean("standardize", false);
  bool set = spec.has("json_set"), columns = spec.has("columns");
  if (set == columns)
    spec.refuse(set ? "columns" : "json_set",
                set ? "both 'json_set' and 'columns' are there"
                    : "neither 'json_set' nor 'columns' is there",
                "give a field exactly one of them");
  if (set)
    field.rule = parse_json_set(spec.section("json_set"));
  else
    field.rule = parse_columns(spec, field.standardize);
  spec.finish();
  return field;
}

// `weight` is the tensor that tail "pad" adds to a batch; a safetensors file
// holds remarks under `__metadata__`, where readers look for no tensor.
void check_tensor_names(const Spec& section, const std::vector<Field>& fields) {
  std::set<std::string> taken;
  for (const Field& field : fields) {
    if (field.name.empty())
      section.refuse("\"\"", "a field has an empty name", "name it");
    for (auto [kept, what] :
         {std::pair("weight", "the weights of padding"),
          std::pair("__metadata__", "remarks in safetensors files")})
      if (field.name == kept)
        section.refuse(kept, "this name is kept for " + std::string(what),
                       "give the field another name");
    std::vector<std::string> names = {field.name};
    if (field.json_set() != nullptr) names.push_back(field.name + "_mask");
    for (const std::string& name : names)
      if (!taken.insert(name).second)
        section.refuse(field.name,
                       "two fields would make a tensor named '" + name + "'",
                       "rename one of them (a json_set field also makes "
                       "NAME_mask)");
  }
}

void check_column_uses(const Spec& section, const std::vector<Field>& fields) {
  std::set<std::string> documents;
  for (const Field& field : fields)
    if (field.json_set() != nullptr) documents.insert(field.json_set()->column);
  for (const Field& field : fields) {
    if (field.columns() == nullptr) continue;
    for (const std::string& column : field.columns()->columns)
      if (documents.contains(column))
        section.refuse(field.name + ".columns",
                       "column '" + column +
                           "' is read as JSON by another field and cannot be "
                           "a number too",
                       "name a column of numbers");
  }
}

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<Field> parse_fields(const Json& section, const std::string& path) {
  Spec spec(section, path);
  std::vector<Field> fields;
  for (const auto& [name, json] : section.object())
    fields.push_back(parse_field(name, json, path));
  if (fields.empty())
    throw Error(ErrorKind::request, {.code = "settings.value",
                                     .what = "cannot use the settings",
                                     .where = path,
                                     .why = "there is no field in it",
                                     .next = "describe at least one field"});
  check_tensor_names(spec, fields);
  check_column_uses(spec, fields);
  return fields;
}

RowLayout layout_of(const std::vector<Field>& fields) {
  RowLayout layout;
  auto add = [&](std::string name, Dtype dtype, Shape shape) {
    TensorSpec tensor{std::move(name), dtype, std::move(shape)};
    tensor.offset = rounded_up(layout.row_bytes, size_of(dtype));
    tensor.bytes = static_cast<std::size_t>(elements_of(tensor.row_shape)) *
                   size_of(dtype);
    layout.row_bytes = tensor.offset + tensor.bytes;
    layout.tensors.push_back(std::move(tensor));
  };
  for (const Field& field : fields) {
    if (const JsonSet* set = field.json_set()) {
      add(field.name, Dtype::float32,
          {set->max, static_cast<std::int64_t>(set->keys.size())});
      add(field.name + "_mask", Dtype::float32, {set->max});
    } else {
      const Columns& columns = *field.columns();
      add(field.name, columns.dtype,
          {static_cast<std::int64_t>(columns.columns.size())});
    }
  }
  layout.row_bytes = rounded_up(layout.row_bytes, 8);
  return layout;
}

std::vector<NeededColumn> needed_columns(const std::vector<Field>& fields) {
  std::vector<NeededColumn> needed;
  auto need = [&](const std::string& name,
                  const std::string& setting) -> NeededColumn& {
    auto found = std::ranges::find(needed, name, &NeededColumn::name);
    if (found != needed.end()) return *found;
    return needed.emplace_back(
        NeededColumn{.name = name, .setting = "fields." + setting});
  };
  for (const Field& field : fields) {
    if (const JsonSet* set = field.json_set()) {
      need(set->column, field.name + ".json_set.column").json = true;
      continue;
    }
    Dtype dtype = field.columns()->dtype;
    for (const std::string& name : field.columns()->columns) {
      NeededColumn& column = need(name, field.name + ".columns");
      column.integer |= dtype == Dtype::int64;
      column.rounded |= dtype == Dtype::float32 && !field.standardize;
    }
  }
  return needed;
}

}  // namespace penstock
