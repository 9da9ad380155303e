#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "penstock/job/job.h"

namespace penstock {
namespace {

int automatic_workers(const Job& job) {
  if (job.loading.options.per_sample) return 0;
  return std::clamp(static_cast<int>(std::floor(loader_cpus(job))), 1, 16);
}

bool tokenises(const Field& field) {
  const std::optional<TokenFacts>& tokens = field.kind->facts().tokens;
  return tokens && tokens->tokenized;
}

/// Where nothing else is asked for, text is tokenised once and what came of it
/// is kept in a store, from which later runs read it.
std::string cache_of(const Job& job, const std::vector<Field>& fields) {
  const LoaderSection& loading = job.loading;
  const bool automatic = loading.cache == "auto" && !loading.budgets.any();
  if (!automatic || std::ranges::none_of(fields, tokenises))
    return loading.cache;
  const std::filesystem::path folder =
      loading.cache_dir.empty() ? default_store_dir()
                                : std::filesystem::path(loading.cache_dir);
  return why_not_a_disk(folder).empty() ? "disk" : loading.cache;
}

}  // namespace

double loader_cpus(const Job& job) {
  const double cpus = read_cpu_limit();
  return job.loading.cpus ? std::min<double>(*job.loading.cpus, cpus) : cpus;
}

LoaderOptions loader_options(const Job& job, Side side) {
  bool train = side == Side::train;
  LoaderOptions options = job.loading.options;
  options.side = side;
  options.shuffle = train && options.shuffle;
  if (!train && job.loading.val_batch_size)
    options.batch_size = *job.loading.val_batch_size;
  options.tail = job.loading.tail.value_or(train ? Tail::drop : Tail::exact);
  options.workers = job.loading.workers.value_or(automatic_workers(job));
  options.stage_names = stage_names(job.fields);
  return options;
}

LoaderOptions validation_options(const Job& job) {
  LoaderOptions options = loader_options(job, Side::val);
  const std::vector<Output> outputs = outputs_of(job.fields);
  const bool named_so =
      std::ranges::find(outputs, kWeight, &Output::name) != outputs.end();
  options.tail = job.model.kind == "own" || named_so ? Tail::exact : Tail::pad;
  return options;
}

Json recipes_of(const Job& job) {
  Json recipes = recipes_of(job.fields);
  for (std::size_t s = 0; s < job.sources.size(); ++s) {
    if (s == 0) recipes = Json(Json::Object{});
    recipes["sources[" + std::to_string(s) + "]"] =
        recipes_of(job.sources[s].fields);
  }
  if (!job.loading.options.operations.empty())
    recipes["loader.operations"] = recipes_of(job.loading.options.operations);
  return recipes;
}

std::int64_t steps_in_all(const Job& job, const Order& order) {
  std::int64_t steps = 0;
  if (__builtin_mul_overflow(job.training.epochs, steps_per_epoch(order),
                             &steps))
    steps = std::numeric_limits<std::int64_t>::max();
  return std::min(steps, job.training.max_steps.value_or(steps));
}

TableDatasetOptions dataset_options(const Job& job, MemoryKind memory) {
  std::vector<LoaderOptions> loaders = {loader_options(job, Side::train)};
  if (!job.model.none()) loaders.push_back(validation_options(job));
  TableDatasetOptions options;
  static_cast<RowsRecipe&>(options) = {.source = job.source,
                                       .fields = job.fields,
                                       .split = job.split,
                                       .drawing = job.loading.drawing,
                                       .seed = job.loading.options.seed};
  static_cast<RowsKeeping&>(options) = {.cache = cache_of(job, job.fields),
                                        .budgets = job.loading.budgets,
                                        .store_dir = job.loading.cache_dir,
                                        .preparing = job.loading.preparing};
  options.batch_rows = job.loading.options.batch_size;
  options.ring_bytes = [loaders](const DatasetFacts& facts) {
    RingBytes bytes{.device = decoder_bytes(facts)};
    for (const LoaderOptions& loader : loaders) {
      const RingBytes more = ring_bytes(loader, facts);
      bytes.device += more.device;
      bytes.host += more.host;
    }
    return bytes;
  };
  options.batches_on_host = !queue_on(job.loading.options.operations, memory);
  options.workers =
      job.loading.workers.value_or(std::max(1, automatic_workers(job)));
  return options;
}

std::vector<MixedSourceOptions> mixed_options(const Job& job) {
  std::vector<MixedSourceOptions> all;
  for (const MixedSource& one : job.sources) {
    all.push_back(
        {.rows = dataset_options(job, MemoryKind::cpu), .weight = one.weight});
    all.back().rows.source = one.source;
    all.back().rows.fields = one.fields;
    all.back().rows.cache = cache_of(job, one.fields);
    all.back().rows.split = one.split;
    all.back().rows.preparing = Preparing::before;
  }
  return all;
}

Json resolved_settings(const Job& job, const Device& device) {
  Json settings = without_secrets(job.document);
  LoaderOptions loading = loader_options(job, Side::train);
  LoaderSection chosen = job.loading;
  chosen.workers = loading.workers;
  chosen.tail = loading.tail;
  loading_settings().show(chosen, settings["loader"]);
  training_settings().show(job.training, settings["train"]);
  settings["model"] = model_section(job.model);
  if (!job.model.none()) {
    Learning learning = job.model.learning;
    learning.threads = threads_of(job.model);
    learning_settings().show(learning, settings["train"]);
  }
  output_settings().show(job.output, settings["output"]);
  settings["device_used"] = device.name();
  return settings;
}

}  // namespace penstock
