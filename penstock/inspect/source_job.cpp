#include "penstock/inspect/source_job.h"

#include "penstock/base/base.h"
#include "penstock/inspect/survey.h"

namespace penstock {
namespace {

Json fields_of(const SourceSpec& spec, StopFlag stop) {
  Json fields{Json::Object{}};
  if (spec.kind == "images") {
    fields["image"]["image"] = Json::Object{};
    return fields;
  }
  Json numbers{Json::Array{}};
  for (const ColumnSurvey& column : survey_rows(spec, stop).columns) {
    const std::string& name = column.info.name;
    if (column.missing > 0 || column.infinite > 0) continue;
    if (column.integer() || column.real() || column.boolean())
      numbers.push_back(name);
    else if (column.text() && name != "numbers")
      fields[name]["text"]["column"] = name;
  }
  if (!numbers.array().empty()) fields["numbers"]["columns"] = numbers;
  return fields;
}

}  // namespace

Json job_of_source(const std::string& uri, std::int64_t batch_size,
                   StopFlag stop) {
  const SourceSpec spec = parse_source_spec(Json(uri), "source");
  Json document;
  const Json defaults =
      source_section(source_kind(spec.kind)->settings.defaults());
  document["source"]["kind"] = spec.kind;
  const Json given = source_section(spec);
  for (const auto& [key, value] : given.object()) {
    const Json* otherwise = defaults.find(key);
    if (otherwise == nullptr || *otherwise != value)
      document["source"][key] = value;
  }
  document["fields"] = fields_of(spec, stop);
  if (document.find("fields")->object().empty())
    throw Error(
        ErrorKind::request,
        {.code = "bench.no_columns",
         .what = "cannot measure this source without a job",
         .where = without_password(uri),
         .why = "the source has no column of numbers or texts without NULL",
         .next = "write a job with its fields and measure the job: 'penstock "
                 "train --init' writes one"});
  document["loader"]["batch_size"] = batch_size;
  return document;
}

}  // namespace penstock
