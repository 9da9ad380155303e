#include "penstock/inspect/prepare.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "penstock/inspect/token_export.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

/// The same rows, kept in their store alone.
Job job_of_store(const Job& job) {
  if (!job.sources.empty())
    throw Error(ErrorKind::request,
                {.code = "prepare.sources",
                 .what = "cannot prepare the rows of several sources",
                 .where = "sources",
                 .why = "each source has its own store",
                 .next = "prepare one job per source, or combine the sources "
                         "into one: \"kind\": \"concatenated\""});
  Job own = job;
  own.loading.cache = "disk";
  own.loading.budgets = {};
  own.device = {.kind = "cpu"};
  return own;
}

/// Of the first field that holds documents; null: none.
const Json* documents_in(const Json& statistics) {
  if (!statistics.is_object()) return nullptr;
  for (const auto& [field, found] : statistics.object())
    if (found.is_object() && found.find("documents") != nullptr) return &found;
  return nullptr;
}

/// Says which rows are not in the store, and lists them beside it.
void tell_left_out(const Dataset& rows, const std::string& store,
                   const PrepareListener& listener, Json& json) {
  constexpr std::size_t kShown = 3;
  const ScanFacts& scan = *rows.facts().scan;
  json["left_out"] = scan.left_out();
  const std::string list = left_out_list(store).string();
  std::error_code none;
  if (scan.bad_rows == 0) std::filesystem::remove(list, none);
  if (scan.bad_rows == 0) return;
  real_files().write(list, left_out_lines(rows) + "\n", Lasting::now,
                     Readers::owner);
  json["left_out_list"] = list;
  if (!listener.note) return;
  std::string text =
      std::to_string(scan.bad_rows) +
      (scan.bad_rows == 1 ? " row is" : " rows are") +
      " unusable and left out (source.on_bad is \"skip\"), listed in " + list;
  for (const BadRow& row : scan.quarantine) {
    if (&row - scan.quarantine.data() == kShown) {
      text += "\n  ...";
      break;
    }
    text += "\n  row " + row.shown_key + ", column '" + row.column +
            "': " + row.why;
  }
  listener.note(text);
}

}  // namespace

namespace {

/// The rows of a job that is prepared, before they are read.
struct OpenedRows {
  TableDatasetOptions options;
  BoundSource source;
};

OpenedRows opened_rows(const Job& own, const Device& device,
                       const PrepareListener& listener, StopFlag stop) {
  TableDatasetOptions options = dataset_options(own, device.memory_kind());
  options.stop = stop;
  options.scanning = listener.note;
  options.resumable = true;
  BoundSource source =
      bound_source(options.fields,
                   open_source(options.source, requests_of(options), {stop}));
  return {std::move(options), std::move(source)};
}

}  // namespace

Json prepare_part(const Job& job, const PartOfScan& which,
                  const PrepareListener& listener, StopFlag stop) {
  const Job own = job_of_store(job);
  const Nanoseconds begun = wall_clock().now();
  const std::unique_ptr<Device> device = open_device(own.device);
  OpenedRows opened = opened_rows(own, *device, listener, stop);
  opened.options.scanned = listener.progress;
  const ScannedRows done = scan_part(opened.options, opened.source, which);
  Json json;
  json["part"] = which.part;
  json["of"] = which.of;
  json["store"] = done.store.string();
  json["already"] = done.already;
  json["rows"] = done.rows;
  json["resumed"] = done.found;
  json["seconds"] = seconds(wall_clock().now() - begun);
  return json;
}

Json commit_parts(const Job& job, const PrepareListener& listener,
                  StopFlag stop, const TokenExport& also) {
  const Job own = job_of_store(job);
  const std::unique_ptr<Device> device = open_device(own.device);
  const OpenedRows opened = opened_rows(own, *device, {}, stop);
  check_parts_are_there(opened.options, opened.source);
  return prepare_job(job, listener, stop, also);
}

Json prepare_job(const Job& job, const PrepareListener& listener, StopFlag stop,
                 const TokenExport& also) {
  if (!also.format.empty()) check_token_export(also.format);
  const Job own = job_of_store(job);
  const Nanoseconds begun = wall_clock().now();
  std::unique_ptr<Device> device = open_device(own.device);
  auto [options, source] = opened_rows(own, *device, listener, stop);
  if (listener.note)
    options.planned = [&](const TierPlan& plan) { listener.note(plan.text()); };
  const Json before = why_store(options, source);
  const std::string& store = before.find("store")->string();
  StoreSize size(room_for(store), listener.note);
  std::int64_t resumed = 0;
  options.scanned = [&](const ScanProgress& progress) {
    resumed = progress.found_rows;
    size.check(progress);
    if (listener.progress) listener.progress(progress);
  };
  const std::string unused =
      unused_labels_text(source.source->schema(), options.fields);
  if (!unused.empty() && listener.note) listener.note(unused);
  std::shared_ptr<const Dataset> rows =
      prepare_dataset(options, source, *device);
  Json json;
  const Json statistics = rows->statistics();
  if (const Json* found = documents_in(statistics)) {
    for (const char* key : {"documents", "tokens", "invalid_utf8"})
      json[key] = *found->find(key);
  } else {
    json["documents"] = rows->rows();
  }
  json["seconds"] = seconds(wall_clock().now() - begun);
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(store, unknown);
  json["store"] = store;
  json["bytes"] = unknown ? Json() : Json(static_cast<std::int64_t>(bytes));
  json["already"] = *before.find("hit");
  json["resumed"] = resumed;
  if (rows->facts().scan != nullptr)
    tell_left_out(*rows, store, listener, json);
  if (const auto& bins = rows->facts().bins)
    json["packing"] = bins->numbers(Side::train).json();
  json["statistics"] = statistics;
  if (!also.format.empty())
    json["export"] = export_tokens(*rows, also.format, also.dir);
  return json;
}

}  // namespace penstock
