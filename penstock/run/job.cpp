#include "penstock/run/job.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/base/connection_string.h"

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

Job::Training parse_training(Spec spec, ModelSpec& model) {
  Job::Training training;
  auto count = [&](std::string_view key) -> std::optional<std::int64_t> {
    if (!spec.has(key)) return spec.raw(key), std::nullopt;
    return spec.integer(key, {}, 1, kMany);
  };
  training.epochs = spec.integer("epochs", 1, 1, kMany);
  training.max_steps = count("max_steps");
  training.checkpoint_every_steps = count("checkpoint_every_steps");
  add_training(spec, model);
  spec.finish();
  return training;
}

int automatic_workers(const Job& job) {
  if (job.loading.per_sample) return 0;
  double cpus = read_host_limits().cpus;
  return std::clamp(static_cast<int>(std::floor(cpus)), 1, 16);
}

/// In a job a source is an object, never the short form of a URI.
const Json* section_of(Spec& spec, std::string_view key) {
  Spec checked(*spec.raw(key), std::string(key));
  return spec.raw(key);
}

void parse_rows(Spec& spec, Job& job) {
  if (!spec.has("source"))
    spec.refuse("source", "this section is missing",
                R"(add "source": {"kind": "sqlite", "path": ..., )"
                R"("table": ...})");
  if (!spec.has("fields"))
    spec.refuse("fields", "this section is missing",
                "name the tensors that a batch shall hold");
  job.source = parse_source_spec(*section_of(spec, "source"), "source");
  job.fields = parse_fields(*spec.raw("fields"), "fields");
}

Job checked_job(const Json& document, bool own_rows) {
  Job job;
  job.document = document;
  Spec spec(document, "");
  const Json none{Json::Object{}};
  auto section = [&](std::string_view key) {
    const Json* found = spec.raw(key);
    return Spec(found == nullptr ? none : *found, std::string(key));
  };
  if (!own_rows) parse_rows(spec, job);
  job.split = parse_split(spec.raw("split"), "split");
  job.loading = parse_loading(section("loader"));
  job.model = parse_model(spec.raw("model"), job.fields);
  job.training = parse_training(section("train"), job.model);
  const Json* device = spec.raw("device");
  job.device =
      parse_device_spec(device == nullptr ? Json("auto") : *device, "device");
  Spec output = section("output");
  job.output = output.text("dir", "runs");
  output.finish();
  spec.finish();
  return job;
}

/// With a next step for whoever has none.
Job advised_job(const Json& document, bool own_rows) {
  try {
    return checked_job(document, own_rows);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (parts.next.empty())
      parts.next = "'penstock schema' lists every key with its values";
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace

Job parse_job(const Json& document) { return advised_job(document, false); }

Job parse_job_of_rows(const Json& document) {
  return advised_job(document, true);
}

Json without_secrets(Json document) {
  const Json* source = document.find("source");
  const Json* uri = source == nullptr ? nullptr : source->find("uri");
  if (uri != nullptr && uri->is_string())
    document["source"]["uri"] = stored_connection(uri->string());
  return document;
}

void apply_setting(Json& document, const std::string& set) {
  auto refuse = [&](const std::string& where, std::string why) {
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use --set " +
                         without_password(set.substr(0, set.find('='))),
                 .where = where,
                 .why = std::move(why) + ", expected section.key=value",
                 .next = "for example --set loader.batch_size=512"});
  };
  if (!is_utf8(set))
    throw Error(ErrorKind::request,
                {.code = "settings.override",
                 .what = "cannot use --set " +
                         without_password(set.substr(0, set.find('='))),
                 .where = "--set",
                 .why = "it is not UTF-8, so the run could not be resumed: its "
                        "settings are kept as JSON",
                 .next = "rename the file, or make a link to it whose name is "
                         "UTF-8, and name that"});
  std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("--set", equals == 0 ? "no key is named" : "there is no '='");
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
    std::string so_far = path.substr(0, start == 0 ? 0 : start - 1);
    if (so_far == "device" && at->is_string()) {
      Json kind = *at;
      *at = Json(Json::Object{{"kind", std::move(kind)}});
    }
    if (!at->is_null() && !at->is_object())
      refuse(so_far.empty() ? "the top of the file" : so_far,
             "found " + std::string(at->type_name()));
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

std::int64_t steps_in_all(const Job& job, const Order& order) {
  std::int64_t steps = 0;
  if (__builtin_mul_overflow(job.training.epochs, steps_per_epoch(order),
                             &steps))
    steps = std::numeric_limits<std::int64_t>::max();
  return std::min(steps, job.training.max_steps.value_or(steps));
}

TableDatasetOptions dataset_options(const Job& job) {
  RowLayout layout = layout_of(job.fields);
  std::vector<LoaderOptions> loaders = {loader_options(job, Side::train)};
  if (!job.model.none()) loaders.push_back(loader_options(job, Side::val));
  return {.source = job.source,
          .fields = job.fields,
          .split = job.split,
          .cache = job.loading.cache,
          .workers =
              job.loading.workers.value_or(std::max(1, automatic_workers(job))),
          .ring_bytes = [layout, loaders](std::int64_t rows) {
            std::size_t bytes = 0;
            for (const LoaderOptions& loader : loaders)
              bytes += ring_bytes(loader, layout, rows);
            return bytes;
          }};
}

Json resolved_settings(const Job& job, const Device& device) {
  Json settings = without_secrets(job.document);
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
  if (job.training.checkpoint_every_steps)
    train["checkpoint_every_steps"] = *job.training.checkpoint_every_steps;
  show_model(job.model, settings);
  settings["output"]["dir"] = job.output;
  settings["device_used"] = device.name();
  return settings;
}

}  // namespace penstock
