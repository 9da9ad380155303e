#include "penstock/session/opening.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "penstock/dataset/dataset.h"
#include "penstock/session/rank_place.h"
#include "penstock/session/scan_line.h"
#include "penstock/session/staging.h"
#include "penstock/session/stores.h"
#include "penstock/session/unused_labels.h"

namespace penstock {

namespace {

/// How far a scan has come, where that takes a while.
std::function<void(const ScanProgress&)> scan_notes(
    std::function<void(const std::string&)> note, std::string source) {
  static constexpr Nanoseconds kFirst = std::chrono::seconds(2);
  static constexpr Nanoseconds kNext = std::chrono::seconds(10);
  const Nanoseconds begun = wall_clock().now();
  return [note = std::move(note), source = std::move(source), begun,
          next = begun + kFirst](const ScanProgress& progress) mutable {
    const Nanoseconds now = wall_clock().now();
    if (now < next) return;
    next = now + kNext;
    note(source +
         "preparing rows: " + scan_line(progress, seconds(now - begun)));
  };
}

/// Says of the source, where there is one of several, which one it is.
void tell(TableDatasetOptions& wanted, const OpenOptions& options,
          const std::string& source = {}) {
  if (!options.note) return;
  wanted.scanning = [note = options.note, source](const std::string& line) {
    note(source + line);
  };
  wanted.scanned = scan_notes(options.note, source);
  wanted.planned = [note = options.note, source](const TierPlan& plan) {
    note(source + "where the rows will be stored:\n" + plan.text());
  };
}

void share_memory(TableDatasetOptions& wanted, const Rank& rank) {
  wanted.ranks = rank.world;
  if (const std::optional<int> here = ranks_around().here)
    wanted.ranks_here = std::min(rank.world, *here);
}

TableDatasetOptions dataset_options(const Job& job, const OpenOptions& options,
                                    const Device& device) {
  TableDatasetOptions wanted = dataset_options(job, device.memory_kind());
  wanted.statistics = options.statistics;
  const bool counted = !options.batches && !job.training.max_steps;
  if (counted)
    wanted.epochs = job.training.epochs;
  else if (!options.batches || *options.batches < 0)
    wanted.epochs.reset();
  if (options.state) wanted.first_epoch = options.state->position.epoch;
  share_memory(wanted, options.rank);
  tell(wanted, options);
  return wanted;
}

/// Of a mixture's statistics those of one source: of the fields that it shares
/// with all others, and its own.
Json statistics_of_source(const Json& all, std::size_t source) {
  Json own(Json::Object{});
  for (const auto& [field, found] : all.object())
    if (field != "sources") own[field] = found;
  const Json* rest = all.find("sources");
  if (rest == nullptr || !rest->is_array() || source >= rest->array().size())
    return own;
  for (const auto& [field, found] : rest->array()[source].object())
    own[field] = found;
  return own;
}

std::vector<MixedSourceOptions> mixed_options(const Job& job,
                                              const OpenOptions& options) {
  std::vector<MixedSourceOptions> wanted = mixed_options(job);
  for (std::size_t s = 0; s < wanted.size(); ++s) {
    if (options.statistics)
      wanted[s].rows.statistics = statistics_of_source(*options.statistics, s);
    share_memory(wanted[s].rows, options.rank);
    tell(wanted[s].rows, options, "sources[" + std::to_string(s) + "]: ");
  }
  return wanted;
}

/// Where the source's files are copied first; a plan only says what that would
/// take.
void stage(TableDatasetOptions& wanted, StopFlag stop) {
  if (const std::string text = not_copied_text(wanted.source, wanted.fields);
      !text.empty() && wanted.scanning)
    wanted.scanning(text);
  if (!wanted.plan_only)
    wanted.source = staged(wanted.source, wanted.scanning, stop);
  else if (const std::string text = staging_text(wanted.source);
           !text.empty() && wanted.scanning)
    wanted.scanning(text);
}

/// Where windows share elements, and each goes to a side by itself, so do the
/// sides.
void warn_of_shared_elements(const TableDatasetOptions& wanted) {
  if (wanted.split.whole() || !wanted.split.by.empty()) return;
  for (const ColumnRequest& request : requests_of(wanted.fields)) {
    if (request.window == 0 || request.stride >= request.window) continue;
    log(LogLevel::warning,
        "windows of column '" + request.column + "' overlap (length " +
            std::to_string(request.window) + ", stride " +
            std::to_string(request.stride) +
            ") and the split is by row, so train rows contain elements of "
            "validation rows. With several files set \"split\": {\"by\": "
            "\"path\"}, else set the stride to the length");
  }
}

/// The source, or what its store says of it where it cannot be opened and the
/// job asks for that.
std::unique_ptr<Source> open_or_stored(TableDatasetOptions& wanted,
                                       StopFlag stop) {
  warn_of_shared_elements(wanted);
  try {
    stage(wanted, stop);
    auto source =
        open_source(wanted.source, requests_of(wanted),
                    {.stop = stop, .fitted = wanted.statistics.has_value()});
    const std::string text =
        unused_labels_text(source->schema(), wanted.fields);
    if (!text.empty() && wanted.scanning) wanted.scanning(text);
    return source;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::source || !uses_stores(wanted)) throw;
    const std::shared_ptr<const Store> store = store_of_source(wanted);
    if (store == nullptr) throw;
    if (!wanted.source.stored_if_missing) {
      ErrorParts parts = error.parts();
      parts.next +=
          "; or set \"source.on_missing\": \"store\" to use the rows that an "
          "earlier run stored in " +
          store->path().string();
      throw Error(error.kind(), std::move(parts)).caused_by(error.cause());
    }
    const std::string line =
        std::string("the source cannot be opened: its rows are read from ") +
        store->path().string() + ", without any later changes: " + error.what();
    log(LogLevel::warning, line);
    if (wanted.scanning) wanted.scanning(line);
    return source_of_store(*store,
                           error.parts().what + ": " + error.parts().why);
  }
}

std::shared_ptr<const Dataset> prepare_mixed_rows(
    std::vector<MixedSourceOptions> wanted, const Job& job, Device& device,
    StopFlag stop) {
  std::vector<std::unique_ptr<Source>> sources;
  for (MixedSourceOptions& one : wanted) {
    one.rows.stop = stop;
    sources.push_back(open_or_stored(one.rows, stop));
  }
  return prepare_mixed(std::move(wanted), std::move(sources),
                       job.loading.exhausted.value_or(Exhausted::stop), device);
}

std::shared_ptr<const Dataset> prepare_rows(TableDatasetOptions wanted,
                                            Device& device, StopFlag stop) {
  wanted.stop = stop;
  std::unique_ptr<Source> source = open_or_stored(wanted, stop);
  wanted.open = [of = wanted.source, requests = requests_of(wanted),
                 fitted = wanted.statistics.has_value()](StopFlag until) {
    return open_source(of, requests, {.stop = until, .fitted = fitted});
  };
  return prepare_dataset(wanted, std::move(source), device);
}

[[noreturn]] void refuse_drawing(const Job& job) {
  throw Error(ErrorKind::request,
              {.code = "sampling.weights",
               .what = "cannot draw rows by their weights",
               .where = job.loading.drawing.balance ? "loader.balance"
                                                    : "loader.weights",
               .why = "the rows come from a function and have no columns",
               .next = "leave the setting out, or pass the rows as arrays, a "
                       "table or a source with columns"});
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
    if (job.loading.drawing && rows->facts().draws == nullptr)
      refuse_drawing(job);
    return rows;
  }
  if (!job.sources.empty())
    return prepare_mixed_rows(mixed_options(job, options), job, device, stop);
  return prepare_rows(dataset_options(job, options, device), device, stop);
}

std::shared_ptr<const Dataset> planned_rows(
    const Job& job, Device& device,
    const std::function<void(const std::string& line)>& note, StopFlag stop) {
  const OpenOptions options{.rank = {.world = ranks_around().world.value_or(1)},
                            .note = note};
  if (!job.sources.empty()) {
    std::vector<MixedSourceOptions> several = mixed_options(job, options);
    for (MixedSourceOptions& one : several) {
      one.rows.planned = nullptr;
      one.rows.plan_only = true;
    }
    return prepare_mixed_rows(std::move(several), job, device, stop);
  }
  TableDatasetOptions wanted = dataset_options(job, options, device);
  wanted.planned = nullptr;  // it is the result
  wanted.plan_only = true;
  return prepare_rows(wanted, device, stop);
}

Order train_order(const Job& job, const DatasetFacts& facts) {
  Order order = order_of(loader_options(job, Side::train), facts.on_side[0]);
  order.mixture = facts.mixture;
  if (order.mixture != nullptr) order.samples = order.mixture->epoch_samples();
  return order;
}

std::string mixture_text(const Job& job, const DatasetFacts& facts) {
  if (facts.mixture == nullptr) return {};
  const Mixture& mixture = *facts.mixture;
  std::string text = "an epoch of " + std::to_string(mixture.epoch_samples()) +
                     " rows takes\n";
  for (std::size_t s = 0; s < mixture.sources(); ++s)
    text += "  " + std::to_string(mixture.taken()[s]) + " of the " +
            std::to_string(mixture.shares()[s].samples) +
            " train rows of sources[" + std::to_string(s) + "] (" +
            job.sources[s].source.kind + "), weight " +
            Json(job.sources[s].weight).dump() + "\n";
  return text;
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
         " random rows (exact order: ~" + rows(exact) + ")";
}

std::string chunk_line(const Order& order, const DatasetFacts& facts) {
  if (!order.shuffle || facts.chunks == 0 ||
      facts.decoded_bytes <= facts.kept_bytes)
    return {};
  const auto rows = static_cast<double>(order.samples);
  const double row_bytes = static_cast<double>(facts.decoded_bytes) / rows;
  const auto kept = static_cast<double>(facts.kept_bytes);
  // Of a row that is drawn anywhere, in the window where there are pages, the
  // chunk is in memory as often as that part of them is.
  const double window =
      order.pages ? std::min(rows, static_cast<double>(order.pages.page) *
                                       static_cast<double>(order.pages.window))
                  : rows;
  const double part = std::min(1.0, kept / (window * row_bytes));
  const auto chunks = static_cast<double>(facts.chunks);
  const double decoded = std::max(chunks, rows * (1 - part));
  if (decoded < 1.1 * chunks) return {};
  const auto page = static_cast<std::int64_t>(std::ceil(rows / chunks));
  // A half of what fits: windows follow one another.
  const auto pages = static_cast<std::int64_t>(
      kept / 2 / (static_cast<double>(page) * row_bytes));
  auto count = [](double number) {
    return std::to_string(std::llround(number));
  };
  auto mib = [](double bytes) {
    return std::to_string(std::llround(bytes / (1 << 20))) + " MiB";
  };
  std::string text = "chunks: this order decodes about " + count(decoded) +
                     " chunks per epoch, while the files have " +
                     count(chunks) + ": of their " +
                     mib(static_cast<double>(facts.decoded_bytes)) + ", " +
                     mib(kept) + " stay in memory (source.decoded_gib)";
  if (pages < 1) return text;
  return text + "; \"order\": {\"paged\": {\"page\": " + std::to_string(page) +
         ", \"window\": " + std::to_string(pages) + "}} decodes about " +
         count(chunks) + ", " + count(decoded / chunks) + " times fewer";
}

std::string preparations_text(const DatasetFacts& facts) {
  std::string text;
  for (std::size_t s = 0; s < facts.preparations.size(); ++s) {
    const PreparationPlan& plan = *facts.preparations[s];
    if (facts.mixture != nullptr)
      text += "sources[" + std::to_string(s) + "]: ";
    text += preparation_text(name_of(plan.form), plan.reason) + "\n";
  }
  return text;
}

Json plan_json(const Job& job, const DatasetFacts& facts) {
  Json json;
  json["rows"] = facts.rows;
  json["train_rows"] = facts.on_side[0];
  json["val_rows"] = facts.on_side[1];
  json["test_rows"] = facts.on_side[2];
  json["plan"] = facts.plan.json();
  if (facts.preparations.size() == 1)
    json["preparation"] = facts.preparations[0]->json();
  if (facts.mixture != nullptr) {
    const Mixture& mixture = *facts.mixture;
    json["epoch_rows"] = mixture.epoch_samples();
    for (std::size_t s = 0; s < mixture.sources(); ++s) {
      Json source;
      source["train_rows"] = mixture.shares()[s].samples;
      source["weight"] = mixture.shares()[s].weight;
      source["epoch_rows"] = mixture.taken()[s];
      if (s < facts.preparations.size())
        source["preparation"] = facts.preparations[s]->json();
      json["sources"].push_back(std::move(source));
    }
  }
  if (Order order = train_order(job, facts); order.shuffle && order.pages) {
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
