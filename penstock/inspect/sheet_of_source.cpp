#include "penstock/base/log.h"
#include "penstock/inspect/contact_sheet.h"
#include "penstock/job/job.h"
#include "penstock/session/session.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

/// The column that --column names, or that is likely to hold pictures.
std::string column_of(const Schema& schema, const std::string& named) {
  for (const ColumnInfo& column : schema.columns)
    if (named.empty() &&
        (column.name == "image" || column.name.ends_with(".bytes")))
      return column.name;
  if (schema.find(named) != nullptr) return named;
  std::vector<std::string> names;
  for (const ColumnInfo& column : schema.columns) names.push_back(column.name);
  throw Error(ErrorKind::request,
              {.code = "images.show",
               .what = "cannot show pictures",
               .where = "--column",
               .why = "the source has no column '" +
                      (named.empty() ? "image" : named) + "'",
               .next = did_you_mean(named, names)});
}

Json document_of(const SheetQuery& query) {
  Json document;
  const SourceSpec source = parse_source_spec(query.source, "source");
  document["source"] = source_section(source);
  const Schema schema = read_schema(source);
  Json& image = document["fields"]["image"]["image"];
  image["column"] = column_of(schema, query.column);
  // As much of each picture as training at 224 pixels sees by default.
  image["size"] = std::int64_t{160};
  image["resize"] = std::int64_t{183};
  for (const char* name : {"class", "label"})
    if (const ColumnInfo* column = schema.find(name);
        column != nullptr && !column->values.empty() &&
        document["fields"].find("label") == nullptr) {
      document["fields"]["label"]["category"]["column"] = name;
      document["fields"]["label"]["category"]["unknown"] = "error";
    }
  document["loader"]["cache"] = "none";
  return document;
}

/// Draws are told where the host draws, which makes the same pictures.
void record_draws(Json& document) {
  if (document.find("fields") == nullptr) return;
  Json fields{Json::Object{}};
  for (const auto& [name, field] : document["fields"].object()) {
    fields[name] = field;
    if (!field.is_object() || field.find("image") == nullptr) continue;
    Json image{Json::Object{}};
    for (const auto& [key, value] : field.find("image")->object())
      if (key != "finish" && key != "decode") image[key] = value;
    image["record_draws"] = true;
    fields[name]["image"] = std::move(image);
  }
  document["fields"] = std::move(fields);
}

/// Rows of zeros in the place of bad ones, and no tensor that reports it,
/// unless the job decides about them. True where this was done.
bool mask_bad_rows(Json& document) {
  const Json* said = document["loader"].find("on_bad");
  if (said != nullptr && *said != Json("stop")) return false;
  document["loader"]["on_bad"] = "mask";
  return true;
}

ContactSheet::Bad bad_rows_of(const Batch& batch) {
  ContactSheet::Bad bad;
  for (const RejectedSample& one : batch.rejected()) {
    if (one.substitute >= 0) continue;
    const std::string why = one.place + ": " + one.why;
    log(LogLevel::warning, why);
    bad.emplace(static_cast<std::size_t>(one.row), why);
  }
  return bad;
}

ContactSheet::Classes classes_in(const Job& job, const Dataset& rows) {
  ContactSheet::Classes all;
  for (const Field& field : job.fields) {
    if (!field.kind->facts().one_class()) continue;
    for (const Json& one : classes_of(field.name, rows))
      all[field.name].push_back(one.is_null()     ? "unknown"
                                : one.is_string() ? one.string()
                                                  : one.dump());
  }
  return all;
}

}  // namespace

void write_contact_sheet(const SheetQuery& query,
                         const std::filesystem::path& path) {
  constexpr std::int64_t kRows = 32;
  Json document = query.is_job ? query.source : document_of(query);
  record_draws(document);
  document["loader"]["batch_size"] = kRows;
  document["loader"]["tail"] = "exact";
  document["device"] = "cpu";
  const bool masked = mask_bad_rows(document);
  const Job job = parse_job(document);
  auto session = open_loader(job, {.batches = 1});
  const Batch batch = promised(session->next());
  const HostCopy copy(batch, session->stream());
  std::vector<NamedTensor> tensors = copy.tensors();
  if (masked)
    std::erase_if(tensors, [](const NamedTensor& tensor) {
      return tensor.name == "weight";
    });
  ContactSheet(tensors, classes_in(job, session->rows()), bad_rows_of(batch))
      .write(path);
}

}  // namespace penstock
