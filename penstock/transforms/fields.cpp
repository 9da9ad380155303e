#include "penstock/transforms/fields.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/name_index.h"
#include "penstock/base/spec.h"
#include "penstock/transforms/kinds.h"

namespace penstock {
namespace {

/// What other libraries call the kinds.
constexpr std::pair<std::string_view, std::string_view> kAlsoCalled[] = {
    {"number", "column"},
    {"numbers", "columns"},
    {"value", "column"},
    {"values", "columns"},
    {"numeric", "columns"},
    {"float", "column"},
    {"int", "column"},
    {"features", "columns"},
    {"class", "category"},
    {"classes", "category"},
    {"label", "category"},
    {"labels", "multi_hot"},
    {"categorical", "category"},
    {"tags", "multi_hot"},
    {"tensor", "array"},
    {"list", "array"},
    {"date", "time"},
    {"datetime", "time"},
    {"timestamp", "time"},
    {"string", "text"},
    {"picture", "image"},
    {"img", "image"},
    {"sound", "audio"},
    {"wav", "audio"},
    {"speech", "audio"},
    {"bbox", "boxes"},
    {"ids", "tokens"}};

/// Empty where no kind is near.
std::string kind_meant_by(std::string_view key,
                          const std::vector<std::string>& kinds) {
  for (const auto& [also, kind] : kAlsoCalled)
    if (also == key) return std::string(kind);
  return nearest(key, kinds);
}

/// Of the section `json` at `path`, which names no kind.
[[noreturn]] void refuse_kind(const Json& json, const std::string& path) {
  auto refusal = [&](std::string why, std::string next) {
    return Error(ErrorKind::request, {.code = "settings.value",
                                      .what = "cannot use the settings",
                                      .where = path,
                                      .why = std::move(why),
                                      .next = std::move(next)});
  };
  std::vector<std::string> kinds;
  std::string all;
  for (const FieldDescriptor& kind : field_descriptors()) {
    kinds.push_back(kind.key);
    all += (all.empty() ? "" : ", ") + kind.key;
  }
  for (const auto& [key, value] : json.object()) {
    const std::string meant = kind_meant_by(key, kinds);
    if (!meant.empty())
      throw refusal("'" + key + "' is not a kind of field",
                    "did you mean '" + meant + "'? Kinds: " + all);
  }
  if (json.object().empty())
    throw refusal(
        "the kind of the field is missing",
        R"(write for example {"columns": ["a", "b"]}; kinds: )" + all);
  throw refusal("'" + json.object().begin()->first + "' is not a kind of field",
                "kinds: " + all);
}

/// The kind that a section names; it must name exactly one.
const FieldDescriptor& field_kind(const Spec& section, const Json& json,
                                  const std::string& path) {
  const FieldDescriptor* found = nullptr;
  for (const FieldDescriptor& kind : field_descriptors()) {
    if (!section.has(kind.key)) continue;
    if (found != nullptr)
      section.refuse(
          kind.key,
          "both '" + found->key + "' and '" + kind.key + "' are given",
          "give a field exactly one of them");
    found = &kind;
  }
  if (found != nullptr) return *found;
  refuse_kind(json, path);
}

Field parse_field(const std::string& name, const Json& json,
                  const std::string& path) {
  const std::string place = path.empty() ? name : path + "." + name;
  Spec section(json, place);
  Field field{.name = name,
              .kind = field_kind(section, json, place).make(name, section)};
  section.finish();
  return field;
}

// `weight` is the tensor that tail "pad" adds to a batch; a safetensors file
// holds metadata under `__metadata__`, where readers look for no tensor.
void check_tensor_names(const Spec& section, const std::vector<Field>& fields) {
  std::set<std::string> taken;
  for (const Field& field : fields) {
    if (field.name.empty())
      section.refuse("\"\"", "a field has an empty name", "name the field");
    for (auto [kept, what] :
         {std::pair("weight", "the weights of padding"),
          std::pair("__metadata__", "metadata of safetensors files")})
      if (field.name == kept)
        section.refuse(kept, "this name is reserved for " + std::string(what),
                       "give the field another name");
    for (const Output& tensor : field.kind->facts().outputs)
      if (!taken.insert(tensor.name).second)
        section.refuse(
            field.name,
            "two fields would produce a tensor named '" + tensor.name + "'",
            "rename one of them (a json_set field also produces NAME_mask)");
  }
}

void check_column_uses(const Spec& section, const std::vector<Field>& fields) {
  std::set<std::string> documents;
  for (const Field& field : fields)
    for (const ColumnRequest& request : field.kind->facts().columns)
      if (request.as == ReadAs::json) documents.insert(request.column);
  for (const Field& field : fields)
    for (const ColumnRequest& request : field.kind->facts().columns)
      if (request.as != ReadAs::json && documents.contains(request.column))
        section.refuse(field.name + ".columns",
                       "column '" + request.column +
                           "' is read as JSON by another field and cannot also "
                           "be a number",
                       "name a column of numbers");
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
                                     .why = "the section has no fields",
                                     .next = "add at least one field"});
  if (fields.size() == 1)
    if (auto alone = fields[0].kind->alone()) fields[0].kind = std::move(alone);
  check_tensor_names(spec, fields);
  check_column_uses(spec, fields);
  return fields;
}

Json fields_schema() {
  std::vector<KindSettings> kinds;
  for (const FieldDescriptor& kind : field_descriptors())
    kinds.push_back({.settings = kind.settings()});
  Json schema;
  schema["type"] = "object";
  schema["minProperties"] = 1;
  schema["description"] =
      "The tensors of a batch by name, and how each is made from columns.";
  schema["additionalProperties"] = schema_of_kinds({}, kinds);
  return schema;
}

std::vector<Output> outputs_of(const std::vector<Field>& fields) {
  std::vector<Output> outputs;
  for (const Field& field : fields)
    for (const Output& output : field.kind->facts().outputs)
      outputs.push_back(output);
  return outputs;
}

RowLayout layout_of(const std::vector<Field>& fields) {
  RowLayout layout;
  for (const Field& field : fields)
    layout.append(field.kind->facts().stored.tensors);
  layout.round_up(8);
  return layout;
}

std::vector<ColumnRequest> requests_of(const std::vector<Field>& fields) {
  std::deque<ColumnRequest> requests;  // whose names stay where they are
  NameIndex places;
  for (const Field& field : fields)
    for (const ColumnRequest& wanted : field.kind->facts().columns) {
      const std::optional<std::size_t> place = places.find(wanted.column);
      if (!place) {
        places.add(requests.emplace_back(wanted).column);
        continue;
      }
      ColumnRequest* found = &requests[*place];
      if (wanted.window != found->window || wanted.stride != found->stride)
        throw Error(
            ErrorKind::request,
            {.code = "source.window",
             .what = "cannot read column '" + wanted.column + "'",
             .where = wanted.setting,
             .why = "'" + found->setting + "' reads different windows of it",
             .next = "give both fields the same \"window\" and \"stride\""});
      // An integer keeps its 64 bits for all when one field needs them.
      if (wanted.as == ReadAs::integer) found->as = ReadAs::integer;
      found->rounded |= wanted.rounded;
      found->coded &= wanted.coded;
    }
  return {std::make_move_iterator(requests.begin()),
          std::make_move_iterator(requests.end())};
}

Json stored_recipes_of(const std::vector<Field>& fields) {
  Json::Object recipes;  // fields have different names
  for (const Field& field : fields)
    recipes.emplace_back(field.name, field.kind->facts().stored_recipe);
  return recipes;
}

std::string cheaper(const std::vector<Field>& fields) {
  std::string all;
  for (const Field& field : fields) {
    const std::string& own = field.kind->facts().work.cheaper;
    if (own.empty()) continue;
    if (!all.empty()) all += "; ";
    all += "field '" + field.name + "': " + own;
  }
  return all;
}

Json recipes_of(const std::vector<Field>& fields) {
  Json::Object recipes;
  for (const Field& field : fields)
    recipes.emplace_back(field.name, field.kind->facts().recipe);
  return recipes;
}

}  // namespace penstock
