#include "penstock/run/prepare.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "penstock/run/scanned_rows.h"
#include "penstock/run/stores.h"
#include "penstock/run/token_export.h"

namespace penstock {
namespace {

/// The same rows, kept in their store alone.
Job job_of_store(const Job& job) {
  if (!job.sources.empty())
    throw Error(ErrorKind::request,
                {.code = "prepare.sources",
                 .what = "cannot prepare the rows of several sources",
                 .where = "sources",
                 .why = "each of them has a store of its own",
                 .next = "prepare a job for each source, or make one of them: "
                         "\"kind\": \"concatenated\""});
  Job own = job;
  own.loading.cache = "disk";
  own.loading.budgets = {};
  own.device = {.kind = "cpu"};
  return own;
}

/// Of the first field that holds documents; null: there is none.
const Json* documents_in(const Json& statistics) {
  if (!statistics.is_object()) return nullptr;
  for (const auto& [field, found] : statistics.object())
    if (found.is_object() && found.find("documents") != nullptr) return &found;
  return nullptr;
}

Json packing_json(const Dataset& rows) {
  const auto* bins = dynamic_cast<const PackedDataset*>(&rows);
  return bins == nullptr ? Json() : bins->numbers(Side::train).json();
}

}  // namespace

Json prepare_job(const Job& job, const PrepareListener& listener, StopFlag stop,
                 const TokenExport& also) {
  if (!also.format.empty()) check_token_export(also.format);
  const Job own = job_of_store(job);
  const Nanoseconds begun = wall_clock().now();
  TableDatasetOptions options = dataset_options(own);
  options.stop = stop;
  options.scanning = listener.note;
  options.scanned = listener.progress;
  if (listener.note)
    options.planned = [&](const TierPlan& plan) { listener.note(plan.text()); };
  std::unique_ptr<Device> device = open_device(own.device);
  const Json before = why_store(own);
  std::shared_ptr<const Dataset> rows = prepare_dataset(
      options, open_source(options.source, requests_of(options), {stop}),
      *device);
  Json json;
  const Json statistics = rows->statistics();
  if (const Json* found = documents_in(statistics)) {
    for (const char* key : {"documents", "tokens", "invalid_utf8"})
      json[key] = *found->find(key);
  } else {
    json["documents"] = rows->rows();
  }
  json["seconds"] = seconds(wall_clock().now() - begun);
  const std::string& store = before.find("store")->string();
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(store, unknown);
  json["store"] = store;
  json["bytes"] = unknown ? Json() : Json(static_cast<std::int64_t>(bytes));
  json["already"] = *before.find("hit");
  if (Json packing = packing_json(*rows); !packing.is_null())
    json["packing"] = std::move(packing);
  json["statistics"] = statistics;
  if (!also.format.empty())
    json["export"] =
        export_tokens(*scanned_rows(rows.get()), also.format, also.dir);
  return json;
}

}  // namespace penstock
