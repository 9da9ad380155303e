#include "penstock/run/opening.h"

#include <cmath>

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

std::shared_ptr<const Dataset> prepare_rows(TableDatasetOptions wanted,
                                            Device& device, StopFlag stop) {
  wanted.stop = stop;
  std::unique_ptr<Source> source =
      open_source(wanted.source, requests_of(wanted), {stop});
  return prepare_dataset(wanted, std::move(source), device);
}

[[noreturn]] void refuse_drawing(const Job& job) {
  throw Error(ErrorKind::request,
              {.code = "sampling.weights",
               .what = "cannot draw rows by their weights",
               .where = job.loading.drawing.balance ? "loader.balance"
                                                    : "loader.weights",
               .why = "the rows are made by a function: they have no columns",
               .next = "leave it out, or give the rows as arrays, a table or a "
                       "source with columns"});
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
  if (options.rows) {
    std::shared_ptr<const Dataset> rows = options.rows(job, device, stop);
    if (job.loading.drawing && rows->draws() == nullptr) refuse_drawing(job);
    return rows;
  }
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

Order train_order(const Job& job, const DatasetInfo& info) {
  return order_of(loader_options(job, Side::train), info.on_side[0]);
}

std::string order_line(const Order& order) {
  if (!order.shuffle || !order.pages) return {};
  Order exact = order;
  exact.pages = {};
  auto rows = [](const Order& of) {
    double about = effective_batch(of);  // two digits are known
    double unit =
        about < 100 ? 1 : std::pow(10, std::floor(std::log10(about)) - 1);
    return std::to_string(std::llround(about / unit) * std::llround(unit));
  };
  return "order: pages of " + std::to_string(order.pages.page) +
         " rows, shuffled in windows of " + std::to_string(order.pages.window) +
         ": a batch of " + std::to_string(order.batch_size) +
         " is spread as evenly as ~" + rows(order) +
         " rows from anywhere (exact order: ~" + rows(exact) + ")";
}

Json plan_json(const Job& job, const DatasetInfo& info) {
  Json json;
  json["rows"] = info.rows;
  json["train_rows"] = info.on_side[0];
  json["val_rows"] = info.on_side[1];
  json["plan"] = info.plan.json();
  if (Order order = train_order(job, info); order.shuffle && order.pages) {
    Json& shown = json["order"];
    shown["page"] = order.pages.page;
    shown["window"] = order.pages.window;
    shown["effective_batch"] = effective_batch(order);
    order.pages = {};
    shown["effective_batch_exact"] = effective_batch(order);
  }
  return json;
}

}  // namespace penstock
