#include "penstock/job/short_forms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace penstock {
namespace {

Json written_source(const Json& source, const std::string& path) {
  if (!source.is_string()) return source;
  return source_section(parse_source_spec(source, path));
}

Json columns_rule(Json columns) {
  Json rule;
  rule["columns"] = std::move(columns);
  return rule;
}

Json category_rule(const std::string& column) {
  Json category, rule;
  category["column"] = column;
  rule["category"] = std::move(category);
  return rule;
}

/// Whether a field takes the column's own shape: an array that names none.
bool takes_own_shape(const Json& rule) {
  const Json* array = rule.is_object() ? rule.find("array") : nullptr;
  if (array == nullptr || !array->is_object()) return false;
  const Json* column = array->find("column");
  return column != nullptr && column->is_string() &&
         std::ranges::none_of(
             std::array{"shape", "lengths", "ragged", "window"},
             [&](const char* key) { return array->find(key) != nullptr; });
}

/// The `fields` of one source, whose schema is read at most once.
class WrittenFields {
 public:
  WrittenFields(const Json& source, const SchemaOfSource& schema_of)
      : source_(source), schema_of_(schema_of) {}

  Json of(const Json& fields) {
    if (!fields.is_object()) return fields;
    Json::Object written;
    for (const auto& [name, rule] : fields.object())
      written.emplace_back(name, written_rule(rule));
    return Json(std::move(written));
  }

 private:
  Json written_rule(const Json& rule) {
    if (rule.is_array()) return columns_rule(rule);
    if (takes_own_shape(rule)) return with_own_shape(rule);
    if (!rule.is_string()) return rule;
    if (holds_text(rule.string())) return category_rule(rule.string());
    return columns_rule(Json(Json::Array{rule}));
  }
  const ColumnInfo* find(const std::string& column) {
    if (!schema_) schema_ = schema_of_(source_);
    return schema_->find(column);
  }
  bool holds_text(const std::string& column) {
    const ColumnInfo* const found = find(column);
    return found != nullptr && found->text;
  }
  Json with_own_shape(const Json& rule) {
    const ColumnInfo* const found =
        find(rule.find("array")->find("column")->string());
    if (found == nullptr || found->item.empty()) return rule;
    Json written = rule, shape{Json::Array{}};
    for (const std::int64_t size : found->item) shape.push_back(size);
    written["array"]["shape"] = std::move(shape);
    return written;
  }

  const Json& source_;
  const SchemaOfSource& schema_of_;
  std::optional<Schema> schema_;
};

/// Of a job, or of an entry of its `sources`.
Json written_section(const Json& section, const std::string& path,
                     const SchemaOfSource& schema_of) {
  if (!section.is_object()) return section;
  Json written = section;
  Json source;
  if (const Json* given = section.find("source"))
    written["source"] = source = written_source(*given, path + "source");
  if (const Json* fields = section.find("fields"))
    written["fields"] = WrittenFields(source, schema_of).of(*fields);
  return written;
}

}  // namespace

Schema schema_of_section(const Json& source) {
  return read_schema(parse_source_spec(source, "source"));
}

Json written_out(const Json& document, const SchemaOfSource& schema_of) {
  if (!document.is_object()) return document;
  const Json* const sources = document.find("sources");
  if (sources == nullptr || !sources->is_array() || sources->array().empty() ||
      document.find("source") != nullptr)
    return written_section(document, "", schema_of);
  Json entries{Json::Array{}};
  for (std::size_t at = 0; at < sources->array().size(); ++at)
    entries.push_back(written_section(sources->array()[at],
                                      "sources[" + std::to_string(at) + "].",
                                      schema_of));
  Json written = document;
  // The fields of the job are those of the first source that has no others.
  if (const Json* fields = document.find("fields")) {
    const Json& first = entries.array().front();
    const Json* source = first.is_object() ? first.find("source") : nullptr;
    written["fields"] =
        WrittenFields(source == nullptr ? Json() : *source, schema_of)
            .of(*fields);
  }
  written["sources"] = std::move(entries);
  return written;
}

}  // namespace penstock
