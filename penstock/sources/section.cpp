#include <algorithm>
#include <iterator>

#include "penstock/base/connection_string.h"
#include "penstock/base/error.h"
#include "penstock/base/secret.h"
#include "penstock/base/settings.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/files/object_store.h"
#include "penstock/sources/kinds.h"
#include "penstock/sources/not_read.h"
#include "penstock/sources/source_uri.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/unnamed_source.h"
#include "penstock/sources/uri_settings.h"

namespace penstock {
namespace {

constexpr double kLongestRoundTripMs = 60'000;

/// The first digits of a SHA-256, enough to identify it.
bool is_fingerprint(const std::string& text) {
  return text.size() >= 16 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

void check_fingerprint(Spec& section, SourceSpec& spec) {
  if (!section.has("fingerprint") || is_fingerprint(spec.fingerprint)) return;
  section.refuse("fingerprint",
                 "found '" + spec.fingerprint +
                     "', expected 16 to 64 digits of 0..9 and a..f",
                 "copy the fingerprint from \"dataset\" in a report.json");
}

/// Those of a source of any kind, but for `kind` itself.
const SettingsTable<SourceSpec>& row_settings() {
  static const SettingsTable<SourceSpec> table =
      SettingsTable<SourceSpec>()
          .choice("on_bad", &SourceSpec::skip_bad,
                  {{"stop", false}, {"skip", true}},
                  "What to do with a row that cannot be read or prepared. "
                  "stop: the run ends with an error; skip: the row is left "
                  "out, counted and listed")
          .identity(Identity::none)  // the recipe of a store has it
          .choice("on_missing", &SourceSpec::stored_if_missing,
                  {{"stop", false}, {"store", true}},
                  "What to do when the source cannot be opened. stop: the run "
                  "ends with an error; store: the rows that an earlier run "
                  "stored are used")
          .identity(Identity::none)
          .text("fingerprint", &SourceSpec::fingerprint,
                "Fingerprint that the prepared rows must have, else the run "
                "ends with an error: dataset.fingerprint of a report, or at "
                "least its first 16 digits")
          .last_rule("minLength", 16)
          .identity(Identity::none)
          .text(
              "version", &SourceSpec::version,
              "Version of the data, any text. Change it when the rows have "
              "changed, so that rows kept by an earlier run are not used again")
          .identity(Identity::none)  // the recipe of a store has it
          .check(check_fingerprint);
  return table;
}

void read_key(Spec& section, const SettingSchema& setting, SourceSpec& to) {
  const Json* found = section.raw(setting.key);
  if (found == nullptr) return;
  if (found->is_string()) {
    if (std::string name = section.text(setting.key); !name.empty())
      to.key = {std::move(name)};
    return;
  }
  to.key = section.names(setting.key);
  if (std::ranges::count(to.key, "") > 0)
    section.refuse(setting.key, "a name is empty", "name a column");
}

Json show_key(const SourceSpec& from) {
  if (from.key.empty()) return {};
  if (from.key.size() == 1) return from.key[0];
  return settings::list_of(from.key);
}

Json key_rule() {
  Json rule;
  rule["description"] =
      "Column that identifies a row: unique and without NULLs, or a list of "
      "columns that are unique together. Default: the primary key, or the "
      "database's own row number";
  rule["anyOf"] = Json::Array{};
  rule["anyOf"].push_back(settings::rule_of("string", ""));
  Json list = settings::list_rule("", true);
  list["items"]["minLength"] = 1;
  rule["anyOf"].push_back(std::move(list));
  return rule;
}

constexpr std::size_t kMostValues = 10'000;

Json rows_where_rule() {
  Json rule = settings::rule_of(
      "object",
      "Values that a row must have: {COLUMN: [VALUE, ...]}, texts or integers. "
      "A row is read if each of these columns has one of its values; texts are "
      "never SQL. It applies next to \"where\"");
  rule["additionalProperties"] = settings::rule_of("array", "");
  rule["additionalProperties"]["minItems"] = 1;
  rule["additionalProperties"]["items"]["type"] = Json::Array{};
  rule["additionalProperties"]["items"]["type"].push_back("string");
  rule["additionalProperties"]["items"]["type"].push_back("integer");
  return rule;
}

/// `text` between quotes, those inside it doubled.
std::string quoted(const std::string& text, char quote) {
  std::string sql(1, quote);
  for (const char c : text) sql.append(c == quote ? 2 : 1, c);
  return sql + quote;
}

/// A literal of SQL. COPY takes no parameters, so a value cannot be bound in
/// every statement. A backslash would end a text where a server has
/// standard_conforming_strings = off.
std::string literal(const Spec& section, const SettingSchema& setting,
                    const Json& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.value()))
    return std::to_string(*integer);
  if (!value.is_string())
    section.refuse(setting.key,
                   "found " + value.dump() + ", expected a text or an integer",
                   "write {\"dataset_id\": [\"a\", \"b\"]}");
  const std::string& text = value.string();
  const bool odd = std::ranges::any_of(text, [](char c) {
    return c == '\\' || (static_cast<unsigned char>(c) < ' ');
  });
  if (odd)
    section.refuse(
        setting.key,
        "the value " + value.dump() + " has a backslash or a control character",
        "use values without them, or write the condition as "
        "\"where\"");
  return quoted(text, '\'');
}

/// "COLUMN" IN ('a', 'b').
std::string one_of(const Spec& section, const SettingSchema& setting,
                   const std::string& column, const Json& values) {
  if (column.empty() || column.find('\0') != column.npos ||
      !values.is_array() || values.array().empty() ||
      values.array().size() > kMostValues)
    section.refuse(setting.key,
                   "a column must have a list of 1 to " +
                       std::to_string(kMostValues) + " values",
                   "write {\"dataset_id\": [\"a\", \"b\"]}");
  std::string list;
  for (const Json& value : values.array())
    list += (list.empty() ? "" : ", ") + literal(section, setting, value);
  return quoted(column, '"') + " IN (" + list + ")";
}

/// Becomes part of the condition, and so of the identity of the rows.
void read_rows_where(Spec& section, const SettingSchema& setting,
                     SourceSpec& to) {
  const Json* given = section.raw(setting.key);
  if (given == nullptr) return;
  if (!given->is_object())
    section.refuse(setting.key, "found " + given->dump(),
                   "write {\"dataset_id\": [\"a\", \"b\"]}");
  if (section.has("query"))
    section.refuse(setting.key,
                   "\"rows_where\" applies to a table, but the source has a "
                   "query",
                   "write the condition into the query, or name a table");
  for (const auto& [column, values] : given->object()) {
    const std::string has = one_of(section, setting, column, values);
    to.where = to.where.empty() ? has : "(" + to.where + "\n) AND " + has;
  }
}

void check_query(Spec& section, SourceSpec& spec) {
  if (spec.query.empty()) return;
  if (!spec.table.empty())
    section.refuse("query", "both \"query\" and \"table\" are given",
                   "name a table, or write a query that reads it");
  if (!spec.where.empty())
    section.refuse("where",
                   "\"where\" applies to a table, but the source has a query",
                   "write the condition into the query");
}

/// Those of a table, whatever database holds it.
const SettingsTable<SourceSpec>& table_settings() {
  static const SettingsTable<SourceSpec> table =
      SettingsTable<SourceSpec>()
          .text("table", &SourceSpec::table,
                "Name of the table. Default: the only table of the database")
          .identity(Identity::written)
          .text("query", &SourceSpec::query,
                "SELECT statement to read instead of a table. It is checked to "
                "be read-only")
          .identity(Identity::written)
          .setting("key", key_rule(), read_key, show_key)
          .identity(Identity::written)
          .text("where", &SourceSpec::where,
                "SQL condition that rows must meet, as after WHERE. Default: "
                "all rows")
          .identity(Identity::written)
          .setting("rows_where", rows_where_rule(), read_rows_where,
                   [](const SourceSpec&) { return Json(); })
          .identity(Identity::written)
          .number("round_trip_ms", &SourceSpec::round_trip_ms, 0,
                  kLongestRoundTripMs,
                  "Latency added to each statement, in milliseconds, to "
                  "simulate a distant database")
          .identity(Identity::none)
          .check(check_query);
  return table;
}

SettingsTable<SourceSpec> with_stage(SettingsTable<SourceSpec> table) {
  return table
      .text("stage", &SourceSpec::stage,
            "Where to copy the files before they are read: ram (/dev/shm), "
            "disk (the cache folder) or a folder. Default: the files are read "
            "in place")
      .identity(Identity::none)
      .check([](Spec& section, SourceSpec& spec) {
        if (spec.stage.find("://") != spec.stage.npos)
          section.refuse("stage", "the value is a URL, not a folder",
                         "name a folder, \"ram\" or \"disk\"");
      });
}

/// Those of rows in files.
const SettingsTable<SourceSpec>& file_row_settings() {
  static const SettingsTable<SourceSpec> table = with_stage(
      SettingsTable<SourceSpec>()
          .text("where", &SourceSpec::where,
                "Condition that rows must meet, of comparisons, AND, OR, NOT, "
                "IN, BETWEEN, IS NULL and LIKE. Default: all rows")
          .identity(Identity::written));
  return table;
}

/// Those of a table in a file.
const SettingsTable<SourceSpec>& file_table_settings() {
  static const SettingsTable<SourceSpec> table = with_stage(table_settings());
  return table;
}

const SettingsTable<SourceSpec>& settings_of_rows(const SourceKind& kind) {
  if (kind.files) return file_row_settings();
  return kind.server ? table_settings() : file_table_settings();
}

/// What decides about bad rows, and what rows there must be, is said once: of
/// the whole.
void check_part(const Json& section, const std::string& path) {
  if (!section.is_object()) return;
  Spec written(section, path);
  for (const SettingSchema& setting : row_settings().schemas())
    if (written.has(setting.key))
      written.refuse(
          setting.key, "the key is set in one of several combined sources",
          "set it next to \"sources\", where it applies to all rows");
}

Json place_section(const SourceSpec& spec);
Json without_empty(const Json& section);

/// The sources that a source is made of.
const SettingsTable<SourceSpec>& composed_settings() {
  auto read = [](Spec& spec, const SettingSchema& setting, SourceSpec& to) {
    const Json* list = spec.raw(setting.key);
    if (list == nullptr || !list->is_array() || list->array().size() < 2)
      spec.refuse(setting.key, "expected a list of at least two sources",
                  "write \"sources\": [" + source_examples() + ", ...]");
    for (std::size_t i = 0; i < list->array().size(); ++i) {
      std::string path =
          spec.path_of(setting.key) + "[" + std::to_string(i) + "]";
      to.sources.push_back(parse_source_spec(list->array()[i], path));
      check_part(list->array()[i], path);
    }
  };
  auto show = [](const SourceSpec& from) {
    Json list;
    for (const SourceSpec& source : from.sources)
      list.push_back(without_empty(place_section(source)));
    return list;
  };
  Json rule = settings::rule_of(
      "array",
      "The sources whose rows make up this one, each a section or a URI: one "
      "after the other (concatenated) or joined by their key (joined)");
  rule["minItems"] = 2;
  rule["items"]["anyOf"] = Json::Array{};
  rule["items"]["anyOf"].push_back(settings::rule_of("string", "a URI"));
  Json section;
  section["$ref"] = "#/properties/source";
  rule["items"]["anyOf"].push_back(std::move(section));
  static const SettingsTable<SourceSpec> table =
      SettingsTable<SourceSpec>()
          .setting("sources", std::move(rule), read, show)
          .required()
          .check([](Spec& section, SourceSpec& spec) {
            if (spec.kind == kJoined && spec.sources.size() > 2)
              section.refuse(
                  "sources",
                  "found " + std::to_string(spec.sources.size()) +
                      ", but exactly two sources can be joined",
                  "join two sources, and join the result with the next one");
          });
  return table;
}

bool is_composed(const std::string& kind) {
  return kind == kConcatenated || kind == kJoined;
}

std::vector<std::string> names_of_kinds() {
  std::vector<std::string> names;
  for (const SourceKind& kind : source_kinds()) names.push_back(kind.name);
  names.insert(names.end(), {kConcatenated, kJoined});
  return names;
}

/// Of all kinds only that one is made, unless the kind is unknown.
std::string kind_in(Spec& section) {
  const Json* kind = section.raw("kind");
  const bool known =
      kind != nullptr && kind->is_string() &&
      (is_composed(kind->string()) || source_kind(kind->string()) != nullptr);
  return known ? kind->string() : section.choice("kind", names_of_kinds());
}

bool has_setting(const SourceKind& kind, const std::string& key) {
  std::vector<SettingSchema> settings = kind.settings.schemas();
  return std::ranges::find(settings, key, &SettingSchema::key) !=
         settings.end();
}

/// Refuses settings of tables in a source that has none of its own.
void refuse_settings_of_tables(const Spec& section) {
  for (const SettingSchema& setting : table_settings().schemas())
    if (section.has(setting.key))
      section.refuse(
          setting.key,
          "the key applies to one table, and this source combines several",
          "move it into one of \"sources\"");
}

/// A setting of tables where rows are in files.
void refuse_settings_of_tables(const Spec& section, const SourceKind& kind) {
  if (!kind.files) return;
  for (const SettingSchema& setting : table_settings().schemas())
    if (section.has(setting.key) && setting.key != "where")
      section.refuse(
          setting.key,
          "the key applies to database tables, but in a source of kind \"" +
              kind.name + "\" rows are read by position",
          "leave it out");
}

/// Whether each key is one of a source of this kind.
bool are_all_of(const SourceKind& kind, const Json::Object& section) {
  std::vector<SettingSchema> known = kind.settings.schemas();
  std::ranges::move(settings_beside(kind), std::back_inserter(known));
  return std::ranges::all_of(section, [&](const auto& setting) {
    return setting.first == "kind" ||
           std::ranges::find(known, setting.first, &SettingSchema::key) !=
               known.end();
  });
}

/// A setting of another kind is known, and does not belong here.
void refuse_settings_of_others(const Spec& section, const SourceKind& ours) {
  for (const SourceKind& other : source_kinds())
    for (const SettingSchema& setting : other.settings.schemas()) {
      if (!section.has(setting.key) || has_setting(ours, setting.key)) continue;
      std::string instead =
          setting.key == other.place_key()
              ? "name the " + std::string(ours.server ? "server" : "file") +
                    " as " + section.path_of(ours.place_key())
              : "leave it out";
      throw Error(
          ErrorKind::request,
          {.code = "source.other_kind",
           .what = "cannot use the settings",
           .where = section.path_of(setting.key),
           .why = "'" + setting.key + "' belongs to kind \"" + other.name +
                  "\", but this source is of kind \"" + ours.name + "\"",
           .next = instead + ", or set " + section.path_of("kind") + " to \"" +
                   other.name + "\""});
    }
}

void refuse_password(const Spec& section, const SourceSpec& spec) {
  const bool several = std::any_cast<FileSettings>(&spec.own) != nullptr;
  const auto paths =
      several ? paths_of(spec) : std::vector<std::string>{spec.path};
  if (std::ranges::any_of(paths, may_hold_password))
    section.refuse("path",
                   "the value looks like a connection string with a password, "
                   "and no such file exists",
                   "name a file");
}

void refuse_connection_string(const Spec& section, const SourceSpec& spec) {
  if (spec.path.find("://") == spec.path.npos || files::is_stored(spec.path))
    return;
  const SourceKind* meant = kind_of_uri(spec.path);
  for (const SourceKind& kind : source_kinds())
    if (meant == nullptr && kind.server) meant = &kind;
  section.refuse("path", "the value is a connection string, not a file",
                 meant == nullptr ? "name a file"
                                  : "a server needs \"kind\": \"" +
                                        meant->name + "\" and \"uri\"");
}

}  // namespace

SourceSpec parse_source_spec(const Json& json, const std::string& path) {
  if (json.is_string()) return spec_of_uri(json.string(), path);
  Spec section(json, path);
  if (const Json* kind = section.raw("kind");
      kind != nullptr && kind->is_string())
    refuse_kind_not_read(kind->string(), section.path_of("kind"));
  const std::string name = kind_in(section);
  if (is_composed(name)) {
    refuse_settings_of_tables(section);
    SourceSpec spec;
    spec.kind = name;
    composed_settings().read(section, spec);
    row_settings().read(section, spec);
    section.finish();
    return spec;
  }
  const SourceKind& kind = *source_kind(name);
  if (section.has("sources"))
    section.refuse(
        "sources",
        "a source of kind \"" + kind.name + "\" does not combine other sources",
        "leave it out, or set \"kind\" to \"concatenated\" or "
        "\"joined\"");
  if (!are_all_of(kind, json.object())) {
    refuse_settings_of_others(section, kind);
    refuse_settings_of_tables(section, kind);
  }
  SourceSpec spec = kind.settings.defaults();
  kind.settings.read(section, spec);
  if (!kind.server) {
    refuse_connection_string(section, spec);
    refuse_password(section, spec);
  }
  settings_of_rows(kind).read(section, spec);
  row_settings().read(section, spec);
  section.finish();
  return spec;
}

std::vector<SettingSchema> settings_beside(const SourceKind& kind) {
  std::vector<SettingSchema> all = settings_of_rows(kind).schemas();
  for (SettingSchema& setting : row_settings().schemas())
    all.push_back(std::move(setting));
  return all;
}

SourceSpec parse_own_source_spec(const Json& section, const std::string& path) {
  return row_settings().parse(Spec(section, path));
}

int connections_of(const SourceSpec& spec) {
  int fewest = spec.connections;
  for (const SourceSpec& source : spec.sources) {
    int its = connections_of(source);
    if (its > 0 && (fewest == 0 || its < fewest)) fewest = its;
  }
  return fewest;
}

Json without_secrets_of_source(Json section) {
  if (section.is_string()) return without_secrets_of_uri(section.string());
  if (!section.is_object()) return section;
  if (const Json* uri = section.find("uri"); uri != nullptr && uri->is_string())
    section["uri"] = stored_connection(uri->string());
  const Json* sources = section.find("sources");
  if (sources == nullptr || !sources->is_array()) return section;
  Json shown{Json::Array{}};
  for (const Json& source : sources->array())
    shown.push_back(without_secrets_of_source(source));
  section["sources"] = std::move(shown);
  return section;
}

namespace {

/// Without the settings that are said of all rows.
Json place_section(const SourceSpec& spec) {
  Json section;
  section["kind"] = spec.kind;
  if (is_composed(spec.kind)) {
    composed_settings().show(spec, section);
  } else {
    const SourceKind& kind = *source_kind(spec.kind);
    kind.settings.show(spec, section);
    settings_of_rows(kind).show(spec, section);
  }
  return section;
}

Json without_empty(const Json& section) {
  Json shown{Json::Object{}};
  for (const auto& [key, value] : section.object())
    if (value != Json("")) shown[key] = value;
  return shown;
}

}  // namespace

Json source_section(const SourceSpec& spec) {
  Json section = place_section(spec);
  row_settings().show(spec, section);
  return without_empty(section);
}

Json settings_in_identity(const SourceSpec& spec) {
  if (is_composed(spec.kind)) return Json(Json::Object{});
  const SourceKind& kind = *source_kind(spec.kind);
  Json all(Json::Object{});
  for (const SettingsTable<SourceSpec>* table :
       {&kind.settings, &settings_of_rows(kind), &row_settings()})
    table->show_identity(spec, all);
  return all;
}

Json source_schema() {
  std::vector<SettingSchema> shared = row_settings().schemas();
  shared.insert(shared.begin(),
                {.key = "kind",
                 .rule = settings::choice_rule(
                     names_of_kinds(),
                     "Where the rows are: a database, a format of files, or a "
                     "combination of other sources"),
                 .required = true});
  std::vector<KindSettings> kinds;
  for (const SourceKind& kind : source_kinds()) {
    Json named;
    named["properties"]["kind"]["const"] = kind.name;
    kinds.push_back({std::move(named), kind.settings.schemas()});
    for (SettingSchema& setting : settings_of_rows(kind).schemas())
      kinds.back().settings.push_back(std::move(setting));
  }
  for (const char* kind : {kConcatenated, kJoined}) {
    Json named;
    named["properties"]["kind"]["const"] = kind;
    if (kind == kJoined) named["properties"]["sources"]["maxItems"] = 2;
    kinds.push_back({std::move(named), composed_settings().schemas()});
  }
  Json more;
  more["description"] =
      "Where the rows come from, and what to do with rows that cannot be used.";
  return schema_of_kinds(shared, kinds, more);
}

}  // namespace penstock
