#include "penstock/run/job.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

std::optional<Tail> tail_from(Spec& spec) {
  if (!spec.has("tail")) return spec.raw("tail"), std::nullopt;
  std::string name = spec.choice("tail", "drop", {"drop", "pad", "exact"});
  return name == "drop" ? Tail::drop : name == "pad" ? Tail::pad : Tail::exact;
}

std::string_view name_of(Tail tail) {
  return tail == Tail::drop ? "drop" : tail == Tail::pad ? "pad" : "exact";
}

Job::Loading parse_loading(Spec spec) {
  Job::Loading loading;
  loading.batch_size = spec.integer("batch_size", 256, 1, 1 << 24);
  loading.seed = static_cast<std::uint64_t>(
      spec.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  loading.shuffle = spec.boolean("shuffle", true);
  if (spec.has("workers"))
    loading.workers = static_cast<int>(spec.integer("workers", {}, 0, 1024));
  else
    spec.raw("workers");
  loading.prefetch = static_cast<int>(spec.integer("prefetch", 2, 0, 4096));
  loading.cache =
      spec.choice("cache", "auto", {"auto", "device", "ram", "none"});
  loading.per_sample =
      spec.choice("read", "batch", {"batch", "per_sample"}) == "per_sample";
  if (loading.per_sample && loading.cache != "none") {
    if (loading.cache != "auto")
      spec.refuse("read", "\"per_sample\" reads from the source",
                  "leave \"cache\" out, or set it to \"none\"");
    loading.cache = "none";
  }
  loading.tail = tail_from(spec);
  spec.finish();
  return loading;
}

Job::Training parse_training(Spec spec) {
  Job::Training training;
  training.epochs = spec.integer("epochs", 1, 1, kMany);
  if (spec.has("max_steps"))
    training.max_steps = spec.integer("max_steps", {}, 1, kMany);
  else
    spec.raw("max_steps");
  spec.finish();
  return training;
}

void check_model(const Json* model) {
  if (model == nullptr) return;
  if (model->is_string() && model->string() == "none") return;
  throw Error(ErrorKind::request,
              {.code = "model.missing_part",
               .what = "cannot train a model",
               .where = "model",
               .why = "this program was built without the trainer",
               .next = "use \"model\": \"none\" to measure the input alone"});
}

int automatic_workers(const Job& job) {
  if (job.loading.per_sample) return 0;
  double cpus = read_host_limits().cpus;
  return std::clamp(static_cast<int>(std::floor(cpus)), 1, 16);
}

}  // namespace

Job parse_job(const Json& document) {
  Job job;
  job.document = document;
  Spec spec(document, "");
  const Json none{Json::Object{}};
  auto section = [&](std::string_view key) {
    const Json* found = spec.raw(key);
    return Spec(found == nullptr ? none : *found, std::string(key));
  };
  if (!spec.has("source"))
    spec.refuse("source", "this section is missing",
                R"(add "source": {"kind": "sqlite", "path": ..., )"
                R"("table": ...})");
  if (!spec.has("fields"))
    spec.refuse("fields", "this section is missing",
                "name the tensors that a batch shall hold");
  job.source = parse_source_spec(*spec.raw("source"), "source");
  job.fields = parse_fields(*spec.raw("fields"), "fields");
  job.split = parse_split(spec.raw("split"), "split");
  job.loading = parse_loading(section("loader"));
  job.training = parse_training(section("train"));
  const Json* device = spec.raw("device");
  job.device =
      parse_device_spec(device == nullptr ? Json("auto") : *device, "device");
  check_model(spec.raw("model"));
  Spec output = section("output");
  job.output = output.text("dir", "runs");
  output.finish();
  spec.finish();
  return job;
}

void apply_setting(Json& document, const std::string& set) {
  std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use --set " + set,
                 .why = "expected section.key=value",
                 .next = "for example --set loader.batch_size=512"});
  std::string text = set.substr(equals + 1);
  Json value(text);
  try {
    value = Json::parse(text, "--set");
  } catch (const Error&) {
    // A text, as the rule says.
  }
  Json* at = &document;
  std::string path = set.substr(0, equals);
  for (std::size_t start = 0; start <= path.size();) {
    std::size_t dot = std::min(path.find('.', start), path.size());
    if (!at->is_null() && !at->is_object()) *at = Json();
    at = &(*at)[path.substr(start, dot - start)];
    start = dot + 1;
  }
  *at = std::move(value);
}

Job load_job(const std::string& path, const std::vector<std::string>& sets) {
  std::string text;
  try {
    text = real_files().read(path);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    parts.what = "cannot read the job file";
    throw Error(ErrorKind::request, std::move(parts));
  }
  Json document = Json::parse(text, path);
  for (const std::string& set : sets) apply_setting(document, set);
  return parse_job(document);
}

LoaderOptions loader_options(const Job& job, Side side) {
  bool train = side == Side::train;
  return {.side = side,
          .seed = job.loading.seed,
          .shuffle = train && job.loading.shuffle,
          .tail = job.loading.tail.value_or(train ? Tail::drop : Tail::exact),
          .batch_size = job.loading.batch_size,
          .workers = job.loading.workers.value_or(automatic_workers(job)),
          .prefetch = job.loading.prefetch,
          .per_sample = job.loading.per_sample};
}

DatasetOptions dataset_options(const Job& job) {
  LoaderOptions loading = loader_options(job, Side::train);
  std::size_t slots = static_cast<std::size_t>(job.loading.prefetch) + 2;
  return {.source = job.source,
          .fields = job.fields,
          .split = job.split,
          .cache = job.loading.cache,
          .workers =
              job.loading.workers.value_or(std::max(1, automatic_workers(job))),
          .slot_bytes = slots * slot_bytes(loading, layout_of(job.fields))};
}

Json resolved_settings(const Job& job, const Device& device) {
  Json settings = job.document;
  LoaderOptions loading = loader_options(job, Side::train);
  Json& loader = settings["loader"];
  loader["batch_size"] = loading.batch_size;
  loader["seed"] = static_cast<std::int64_t>(loading.seed);
  loader["shuffle"] = loading.shuffle;
  loader["workers"] = loading.workers;
  loader["prefetch"] = loading.prefetch;
  loader["cache"] = job.loading.cache;
  loader["read"] = loading.per_sample ? "per_sample" : "batch";
  loader["tail"] = name_of(loading.tail);
  Json& train = settings["train"];
  train["epochs"] = job.training.epochs;
  if (job.training.max_steps) train["max_steps"] = *job.training.max_steps;
  settings["output"]["dir"] = job.output;
  settings["device_used"] = device.name();
  if (!job.source.uri.empty())
    settings["source"]["uri"] = without_password(job.source.uri);
  return settings;
}

}  // namespace penstock
