#include "penstock/dataset/opened_source.h"

#include <string>
#include <utility>
#include <vector>

#include "penstock/base/name_index.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

/// As numbers of the enumerations.
Json json_of(ColumnType type) {
  return Json::Array{static_cast<std::int64_t>(type.kind),
                     static_cast<std::int64_t>(type.dtype),
                     static_cast<std::int64_t>(type.logical)};
}

ColumnType type_of(const Json& json) {
  const Json::Array& parts = json.array();
  return {.kind = static_cast<ColumnKind>(parts.at(0).integer()),
          .dtype = static_cast<Dtype>(parts.at(1).integer()),
          .logical = static_cast<ColumnType::Logical>(parts.at(2).integer())};
}

Json json_of(const ColumnInfo& column) {
  Json json;
  json["name"] = column.name;
  json["declared"] = column.declared;
  json["boolean"] = column.boolean;
  json["timestamp"] = column.timestamp;
  json["text"] = column.text;
  json["primary_key"] = column.primary_key;
  json["values"] = Json(Json::Array{});
  for (const std::string& value : column.values)
    json["values"].push_back(value);
  return json;
}

bool is_true(const Json& json, const char* name) {
  return *json.find(name) == Json(true);
}

ColumnInfo column_from(const Json& json) {
  auto yes = [&](const char* name) { return is_true(json, name); };
  ColumnInfo column{.name = json.find("name")->string(),
                    .declared = json.find("declared")->string(),
                    .boolean = yes("boolean"),
                    .timestamp = yes("timestamp"),
                    .text = yes("text"),
                    .primary_key = yes("primary_key")};
  for (const Json& value : json.find("values")->array())
    column.values.push_back(value.string());
  return column;
}

/// What a job may say of a source that names no other rows.
bool names_rows(const std::string& key) {
  for (const char* other :
       {"fingerprint", "on_bad", "on_missing", "path", "stage"})
    if (key == other) return false;
  return true;
}

void add_places(const SourceSpec& spec, Sha256& hash) {
  for (const SourceSpec& part : spec.sources) add_places(part, hash);
  const SourceKind* kind = source_kind(spec.kind);
  if (kind != nullptr && !kind->server) hash.add(staged_name(spec) + "\n");
}

SourceFacts facts_of(const Store& store) {
  const Json& about = store.about();
  const Json& opened = *about.find("opened");
  SourceFacts facts;
  facts.shown =
      about.find("source")->string() + ", as in " + store.path().string();
  facts.identity = *about.find("recipe")->find("source");
  for (const Json& column : opened.find("columns")->array())
    facts.schema.columns.push_back(column_from(column));
  for (const Json& type : opened.find("types")->array())
    facts.types.push_back(type_of(type));
  facts.key = type_of(*opened.find("key"));
  facts.abilities = {.by_key = is_true(opened, "by_key"),
                     .by_position = is_true(opened, "by_position")};
  facts.of_store = true;
  return facts;
}

class SourceOfStore final : public Source {
 public:
  SourceOfStore(const Store& store, std::string why)
      : Source(facts_of(store)), why_(std::move(why)) {
    const Json& rows = *store.about().find("opened")->find("rows");
    if (!rows.is_null()) rows_ = {.rows = rows.integer(), .exact = true};
    if (const Json* copy = store.about().find("recipe")->find("source_copy"))
      copy_ = copy->string();
  }

  std::string version_of_copy() const override { return copy_; }
  RowCount count() const override { return rows_; }
  std::vector<Partition> partitions(int) override { refuse(); }
  std::unique_ptr<Reader> open_reader() override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    throw Error(
        ErrorKind::source,
        {.code = "source.gone",
         .what = "cannot read the rows of " + shown(),
         .where = "source",
         .why = "the store holds the rows prepared with other settings, and "
                "the source cannot be opened: " +
                why_,
         .next = "use the fields, the split and the 'loader.cache' of the run "
                 "that wrote the store, or make the source available again"});
  }

  const std::string why_;
  std::string copy_;
  RowCount rows_;
};

}  // namespace

std::string asked_of_source(const RowsRecipe& recipe) {
  const SourceSpec& spec = recipe.source;
  if (spec.kind.empty()) return {};
  Json asked;
  const Json section = without_secrets_of_source(source_section(spec));
  for (const auto& [key, value] : section.object())
    if (names_rows(key)) asked[key] = value;
  asked["columns"] = Json(Json::Array{});
  for (const ColumnRequest& request : requests_of(recipe)) {
    Json column;
    column["column"] = request.column;
    column["as"] = static_cast<std::int64_t>(request.as);
    column["window"] = request.window;
    column["stride"] = request.stride;
    asked["columns"].push_back(std::move(column));
  }
  Sha256 hash;
  hash.add(asked.dump());
  add_places(spec, hash);
  return hash.hex();
}

Json opened_json(const RowsRecipe& recipe, const Source& source) {
  Json opened;
  const std::string asked = asked_of_source(recipe);
  if (asked.empty()) return opened;
  opened["asked"] = asked;
  opened["columns"] = Json(Json::Array{});
  const NameIndex names(source.schema().columns, &ColumnInfo::name);
  for (const ColumnRequest& request : requests_of(recipe))
    if (const std::optional<std::size_t> at = names.find(request.column))
      opened["columns"].push_back(json_of(source.schema().columns[*at]));
  opened["types"] = Json(Json::Array{});
  for (ColumnType type : source.types())
    opened["types"].push_back(json_of(type));
  opened["key"] = json_of(source.facts().key);
  opened["by_key"] = source.abilities().by_key;
  opened["by_position"] = source.abilities().by_position;
  // By key it may cost a statement, and nobody needs it.
  opened["rows"] =
      source.abilities().by_position ? Json(*source.count().rows) : Json();
  return opened;
}

std::unique_ptr<Source> source_of_store(const Store& store, std::string why) {
  return std::make_unique<SourceOfStore>(store, std::move(why));
}

}  // namespace penstock
