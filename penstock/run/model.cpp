#include "penstock/run/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

constexpr std::int64_t kMostWidth = 4096;
constexpr std::int64_t kWidthStep = 8;
constexpr std::int64_t kMany = std::int64_t{1} << 40;
/// With less, libtorch 2.11 ends the process while it is loaded.
constexpr std::size_t kTrainerBytes = 512 << 20;

const Field& field_named(Spec& spec, std::string_view key,
                         const std::vector<Field>& fields) {
  std::string name = spec.text(key);
  auto found = std::ranges::find(fields, name, &Field::name);
  if (found != fields.end()) return *found;
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  spec.refuse(key, "there is no field '" + name + "'",
              did_you_mean(name, names));
}

const Field& set_of(Spec& spec, const std::vector<Field>& fields) {
  const Field& field = field_named(spec, "set", fields);
  const JsonSet* settings = json_set_of(field);
  if (settings == nullptr)
    spec.refuse("set", "field '" + field.name + "' is no json_set",
                "name the field that holds the receivers");
  if (settings->min < 1)
    spec.refuse("set",
                "field '" + field.name + "' may be empty: its \"min\" is 0",
                "set \"min\" to at least 1: a position needs a receiver");
  return field;
}

const Field& target_of(Spec& spec, const std::vector<Field>& fields) {
  const Field& field = field_named(spec, "target", fields);
  const Numbers* columns = numbers_of(field);
  if (columns == nullptr || columns->columns.size() != 2)
    spec.refuse("target",
                "field '" + field.name + "' is not made of two columns",
                "name a field with the columns of latitude and longitude");
  if (columns->dtype == Dtype::int64)
    spec.refuse("target", "field '" + field.name + "' holds whole numbers",
                "leave out its \"dtype\", or make it float64");
  return field;
}

std::string key_of_set(Spec& spec, std::string_view key, const JsonSet& set) {
  std::string name = spec.text(key);
  if (std::ranges::find(set.keys, name) == set.keys.end())
    spec.refuse(key, "the set has no key '" + name + "'",
                did_you_mean(name, set.keys));
  return name;
}

}  // namespace

ModelSpec parse_model(const Json* section, const std::vector<Field>& fields) {
  ModelSpec model;
  if (section == nullptr) return model;
  if (section->is_string()) {
    if (section->string() == "none") return model;
    throw Error(
        ErrorKind::request,
        {.code = "settings.value",
         .what = "cannot use a setting",
         .where = "model",
         .why = "found \"" + section->string() +
                "\", expected \"none\" or an object",
         .next = R"(for example {"kind": "set_position", "set": ...})"});
  }
  Spec spec(*section, "model");
  spec.text("kind");  // it has no default
  model.kind = spec.choice("kind", "", {"set_position"});
  const Field& set = set_of(spec, fields);
  model.set = set.name;
  model.target = target_of(spec, fields).name;
  const JsonSet& settings = *json_set_of(set);
  model.latitude = key_of_set(spec, "latitude", settings);
  model.longitude = key_of_set(spec, "longitude", settings);
  model.strength = key_of_set(spec, "strength", settings);
  model.width = spec.integer("width", model.width, kWidthStep, kMostWidth);
  if (model.width % kWidthStep != 0)
    spec.refuse(
        "width",
        "found " + std::to_string(model.width) + ", expected a multiple of " +
            std::to_string(kWidthStep),
        "write " + std::to_string(model.width / kWidthStep * kWidthStep));
  model.dropout = spec.number("dropout", model.dropout, 0, 0.9);
  model.noise_db = spec.number("noise_db", model.noise_db, 0, 100);
  model.seed = static_cast<std::uint64_t>(
      spec.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  spec.finish();
  return model;
}

void add_training(Spec& train, ModelSpec& model) {
  model.lr = train.number("lr", model.lr, 0, 1000);
  model.warmup_steps =
      train.integer("warmup_steps", model.warmup_steps, 0, kMany);
  model.weight_decay =
      train.number("weight_decay", model.weight_decay, 0, 1000);
  model.clip_norm = train.number("clip_norm", model.clip_norm, 0, 1e9);
  model.threads =
      static_cast<int>(train.integer("threads", model.threads, 0, 1024));
}

int threads_of(const ModelSpec& model) {
  if (model.threads > 0) return model.threads;
  return std::max(1, static_cast<int>(std::floor(read_host_limits().cpus)));
}

void show_model(const ModelSpec& model, Json& settings) {
  if (model.none()) {
    settings["model"] = "none";
    return;
  }
  Json& section = settings["model"];
  section["kind"] = model.kind;
  section["set"] = model.set;
  section["target"] = model.target;
  section["latitude"] = model.latitude;
  section["longitude"] = model.longitude;
  section["strength"] = model.strength;
  section["width"] = model.width;
  section["dropout"] = model.dropout;
  section["noise_db"] = model.noise_db;
  section["seed"] = static_cast<std::int64_t>(model.seed);
  Json& train = settings["train"];
  train["lr"] = model.lr;
  train["warmup_steps"] = model.warmup_steps;
  train["weight_decay"] = model.weight_decay;
  train["clip_norm"] = model.clip_norm;
  train["threads"] = threads_of(model);
}

void check_model_device(const ModelSpec& model, MemoryKind memory) {
  if (model.none() || memory != MemoryKind::sim) return;
  throw Error(ErrorKind::request,
              {.code = "model.on_sim",
               .what = "cannot train a model on the simulated device",
               .where = "model",
               .why = "\"device\" is sim, which only takes time",
               .next = "set \"device\" to \"auto\", or \"model\" to \"none\""});
}

const TrainerPlugin& load_trainer(
    const std::vector<std::filesystem::path>& folders) {
  if (!has_addresses_left(kTrainerBytes))
    throw Error(
        ErrorKind::out_of_memory,
        {.code = "trainer.out_of_memory",
         .what = "cannot load the part that trains models",
         .where = "this process",
         .why = "libtorch needs " + std::to_string(kTrainerBytes >> 20) +
                " MiB of addresses, and a limit leaves fewer",
         .next = "raise that limit (ulimit -v), or use \"model\": "
                 "\"none\" to measure the input alone"});
  return load_plugin<TrainerPlugin>(
      {.library = "libpenstock_trainer.so",
       .entry = kTrainerPartEntry,
       .shown = "the part that trains models",
       .kind = ErrorKind::request,
       .code = "trainer",
       .install = "in the sources, run tools/fetch_torch and build again "
                  "(Python's wheel does not hold it); or use \"model\": "
                  "\"none\" to measure the input alone"},
      folders);
}

std::unique_ptr<Device> training_device(std::unique_ptr<Device> opened,
                                        const DeviceSpec& wanted,
                                        const TrainerPlugin& trainer) {
  bool ours_to_choose = wanted.kind == "auto";
  if (!ours_to_choose || opened->memory_kind() != MemoryKind::cuda)
    return opened;
  std::string why = trainer.cuda_unavailable_reason();
  if (why.empty()) return opened;
  log(LogLevel::warning, "the device is 'cpu': " + opened->name() +
                             " is there, but libtorch cannot use it: " + why);
  return open_device({.kind = "cpu"});
}

std::unique_ptr<Stepper> open_model(const ModelSpec& spec,
                                    const TableDataset& data, Device& device,
                                    std::int64_t steps) {
  PENSTOCK_ASSERT(!spec.none(), "there is a model to open");
  check_model_device(spec, device.memory_kind());
  // libtorch has two pools, which the calling thread is part of.
  try_threads("libtorch", 2 * (threads_of(spec) - 1));
  return load_trainer().make_stepper(spec, data, device, steps);
}

}  // namespace penstock
