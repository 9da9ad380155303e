#include "penstock/run/opening.h"

namespace penstock {

namespace {

TableDatasetOptions dataset_options(const Job& job,
                                    const OpenOptions& options) {
  TableDatasetOptions wanted = dataset_options(job);
  wanted.statistics = options.statistics;
  if (!options.note) return wanted;
  wanted.scanning = options.note;
  wanted.planned = [note = options.note](const TierPlan& plan) {
    note("where the rows will be stored:\n" + plan.text());
  };
  return wanted;
}

std::shared_ptr<const Dataset> prepare_rows(const TableDatasetOptions& wanted,
                                            Device& device, StopFlag stop) {
  std::unique_ptr<Source> source =
      open_source(wanted.source, requests_of(wanted), {stop});
  return prepare_dataset(wanted, std::move(source), device);
}

}  // namespace

void check_rank(const Rank& rank, const char* code, const char* where) {
  if (rank.world >= 1 && rank.rank >= 0 && rank.rank < rank.world) return;
  throw Error(ErrorKind::request,
              {.code = code,
               .what = "cannot use rank " + std::to_string(rank.rank) + " of " +
                       std::to_string(rank.world),
               .where = where,
               .why = "expected 0 <= rank < world",
               .next = "ranks count from 0: rank 0 and 1 of a world of 2"});
}

std::shared_ptr<const Dataset> open_rows(const Job& job, Device& device,
                                         const OpenOptions& options,
                                         StopFlag stop) {
  if (options.rows) return options.rows(job, device, stop);
  return prepare_rows(dataset_options(job, options), device, stop);
}

DatasetInfo plan_rows(const Job& job,
                      std::function<void(const std::string& line)> note,
                      StopFlag stop) {
  std::unique_ptr<Device> device = open_device(job.device);
  TableDatasetOptions wanted = dataset_options(job, {.note = std::move(note)});
  wanted.planned = nullptr;  // it is the result
  wanted.plan_only = true;
  return prepare_rows(wanted, *device, stop)->info();
}

Json plan_json(const DatasetInfo& info) {
  Json json;
  json["rows"] = info.rows;
  json["train_rows"] = info.on_side[0];
  json["val_rows"] = info.on_side[1];
  json["plan"] = info.plan.json();
  return json;
}

}  // namespace penstock
