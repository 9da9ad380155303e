#include "penstock/job/mixed_sources.h"

#include <algorithm>

#include "penstock/base/settings.h"

namespace penstock {
namespace {

constexpr const char* kSection = "sources";

/// Fields in the order of those of the first source, where they have the same
/// names: so a batch has its tensors in one order, whatever a source's own.
std::vector<Field> in_order_of(const std::vector<Field>& first,
                               std::vector<Field> fields) {
  std::ranges::stable_sort(fields, {}, [&](const Field& field) {
    return std::ranges::find(first, field.name, &Field::name) - first.begin();
  });
  return fields;
}

/// `own` fields, or the job's.
std::vector<Field> fields_of(Spec& entry, const BesideSources& job) {
  if (const Json* own = entry.raw("fields"))
    return parse_fields(*own, entry.path_of("fields"));
  if (job.fields.empty())
    entry.refuse("fields", "neither this entry nor the job has fields",
                 "name the tensors of a batch, here or in the job for all "
                 "sources without their own fields");
  return job.fields;
}

// A source has the job's split unless it has its own; share and most belong to
// the job as a whole, so they are taken from there.
MixedSource parse_entry(const Json& json, const std::string& path,
                        const BesideSources& job) {
  Spec entry(json, path);
  const Json* source = entry.raw("source");
  if (source == nullptr)
    entry.refuse("source", "this section is missing",
                 "write {\"source\": {\"kind\": ...}, \"weight\": 1}");
  MixedSource made;
  made.source = parse_source_spec(*source, entry.path_of("source"));
  made.fields = fields_of(entry, job);
  made.split = job.split;
  if (const Json* split = entry.raw("split")) {
    made.split = parse_split(split, entry.path_of("split"));
    made.split.share = job.split.share;
    made.split.most = job.split.most;
  }
  made.weight =
      entry.number("weight", 1, Mixture::kLeastWeight, Mixture::kMostWeight);
  entry.finish();
  for (const Field& field : made.fields)
    if (field.name == kSection || field.name == kSourceTensor)
      entry.refuse("fields", "a field has the name '" + field.name + "'",
                   "give the field another name: the tensor 'source' holds the "
                   "number of each row's source");
  return made;
}

void check_beside(Spec& document, const BesideSources& job) {
  if (document.has("source"))
    document.refuse(kSection, "the job also has \"source\"",
                    "move it into the list, or leave one of the two out");
  if (job.preparing == Preparing::meanwhile)
    document.refuse("loader.prepare",
                    "rows of several \"sources\" are prepared before the first "
                    "batch",
                    "leave it out, or combine the sources into one: \"kind\": "
                    "\"concatenated\"");
  if (job.drawing)
    document.refuse(job.drawing.balance ? "loader.balance" : "loader.weights",
                    "rows are drawn by a column, and \"sources\" are mixed",
                    "give the sources weights: \"sources\": [{\"source\": ..., "
                    "\"weight\": 2}, ...]");
}

}  // namespace

std::vector<MixedSource> parse_mixed_sources(Spec& document,
                                             const BesideSources& job) {
  check_beside(document, job);
  const Json& list = *document.raw(kSection);
  if (!list.is_array() || list.array().size() < 2)
    document.refuse(kSection, "expected a list of at least two sources",
                    "write [{\"source\": ..., \"weight\": 2}, {\"source\": "
                    "..., \"weight\": 1}]");
  std::vector<MixedSource> sources;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    sources.push_back(parse_entry(
        list.array()[i], kSection + ("[" + std::to_string(i) + "]"), job));
    std::vector<Field>& fields = sources.back().fields;
    fields = in_order_of(sources.front().fields, std::move(fields));
  }
  return sources;
}

Json mixed_sources_schema() {
  auto same_as = [](const char* section, const char* about) {
    Json rule;
    rule["description"] = about;
    rule["$ref"] = std::string("#/properties/") + section;
    return rule;
  };
  Json source;
  source["description"] =
      "Where the rows of this entry are: a section or a URI";
  source["anyOf"] = Json::Array{};
  source["anyOf"].push_back(settings::rule_of("string", "a URI"));
  source["anyOf"].push_back(same_as("source", "A source in full"));
  Json weight =
      settings::number_rule(Mixture::kLeastWeight, Mixture::kMostWeight,
                            "Share of the batch rows that come from this "
                            "source, in proportion to the other weights");
  weight["default"] = 1;
  Json rule =
      settings::rule_of("array",
                        "Several sources instead of \"source\", whose rows are "
                        "mixed in each batch by their weights");
  rule["minItems"] = 2;
  rule["items"] = object_schema(
      {{.key = "source", .rule = std::move(source), .required = true},
       {.key = "fields",
        .rule = same_as("fields",
                        "Fields of this source. Default: those of the job")},
       {.key = "split",
        .rule = same_as(
            "split",
            "Division of the rows of this source. Default: that of the job")},
       {.key = "weight", .rule = std::move(weight)}});
  return rule;
}

}  // namespace penstock
