#include "penstock/sources/files/file_settings.h"

#include <algorithm>

#include "penstock/sources/files/object_store.h"

namespace penstock {
namespace {

void read_path(Spec& spec, const SettingSchema& setting, SourceSpec& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr || found->is_string()) {
    to.path = spec.text(setting.key);
    if (to.path.empty())
      spec.refuse(setting.key, "it is empty", "name a file or a folder");
    if (files::is_stored(to.path)) files::check_stored(to.path);
    return;
  }
  std::vector<std::string> paths = spec.names(setting.key);
  if (std::ranges::count(paths, "") > 0)
    spec.refuse(setting.key, "one of them is empty", "name a file or a folder");
  for (const std::string& path : paths)
    if (files::is_stored(path)) files::check_stored(path);
  std::any_cast<FileSettings&>(to.own).paths = std::move(paths);
}

Json show_path(const SourceSpec& from) {
  const FileSettings& own = file_settings_of(from);
  if (!own.paths.empty()) return settings::list_of(own.paths);
  return Json(from.path);
}

Json path_rule() {
  Json rule;
  rule["description"] =
      "A file, a pattern such as \"day*.csv\", a folder, whose files are all "
      "read, or a list of these";
  rule["anyOf"] = Json::Array{};
  Json text = settings::rule_of("string", "");
  text["minLength"] = 1;
  rule["anyOf"].push_back(std::move(text));
  Json list = settings::list_rule("", true);
  list["items"]["minLength"] = 1;
  rule["anyOf"].push_back(std::move(list));
  return rule;
}

void read_columns(Spec& spec, const SettingSchema& setting, SourceSpec& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  Spec columns = spec.section(setting.key);
  auto& chosen = std::any_cast<FileSettings&>(to.own).columns;
  for (const auto& [name, type] : found->object())
    chosen.emplace_back(name, columns.choice(name, column_type_names()));
}

Json show_columns(const SourceSpec& from) {
  Json shown{Json::Object{}};
  for (const auto& [name, type] : file_settings_of(from).columns)
    shown[name] = type;
  return shown == Json(Json::Object{}) ? Json() : shown;
}

Json columns_rule() {
  Json rule = settings::rule_of("object",
                                "Types of columns by name, where they should "
                                "differ from the types found in the files");
  rule["additionalProperties"] = settings::choice_rule(column_type_names(), "");
  return rule;
}

}  // namespace

// What pandas takes for missing, so that a table that it wrote or reads is the
// same here.
std::vector<std::string> FileSettings::default_na() {
  return {"",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
          "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
          "NaN",  "None",   "n/a",      "nan",  "null"};
}

const FileSettings& file_settings_of(const SourceSpec& spec) {
  return *std::any_cast<FileSettings>(&spec.own);
}

std::vector<std::string> paths_of(const SourceSpec& spec) {
  const FileSettings& own = file_settings_of(spec);
  return own.paths.empty() ? std::vector<std::string>{spec.path} : own.paths;
}

const std::vector<std::string>& column_type_names() {
  static const std::vector<std::string> names = {
      "bool",   "int8",   "int16",   "int32",   "int64",     "uint8", "uint16",
      "uint32", "uint64", "float32", "float64", "timestamp", "text",  "json"};
  return names;
}

SettingsTable<SourceSpec> path_settings(
    const std::string& kind, const SettingsTable<FileSettings>& own) {
  SettingsTable<SourceSpec> table({.kind = kind});
  table.own(&SourceSpec::own, own)
      .setting("path", path_rule(), read_path, show_path)
      .required()
      .identity(Identity::written)
      .setting("columns", columns_rule(), read_columns, show_columns)
      .identity(Identity::written);
  return table;
}

SourceKind file_kind(const std::string& name, const std::string& shown,
                     const std::string& plugin,
                     std::vector<std::string> extensions,
                     const SettingsTable<FileSettings>& own) {
  return {.name = name,
          .shown = shown,
          .prefixes = {name + ":"},
          .example = name + ":PATH",
          .files = true,
          .extensions = std::move(extensions),
          .plugin = plugin,
          .settings = path_settings(name, own)};
}

SettingsTable<FileSettings>& add_union(SettingsTable<FileSettings>& table) {
  return table
      .choice("schema", &FileSettings::union_schema,
              {{"same", false}, {"union", true}},
              "How files with different columns are combined. same: every file "
              "must have the columns of the first; union: a column that a file "
              "lacks is NULL in its rows")
      .identity(Identity::none);  // files of one schema are read alike
}

}  // namespace penstock
