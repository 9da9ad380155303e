#include "penstock/run/trained_run.h"

#include <algorithm>
#include <utility>

#include "penstock/run/carried_files.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(const char* code, std::string where, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = code,
                                   .what = "cannot make predictions",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

constexpr const char* kNameRun =
    "name the folder of a run, such as runs/latest, or the folder that "
    "--output wrote";

Json document_of(const std::filesystem::path& folder) {
  const std::string path = folder / "run.json";
  Json run;
  try {
    run = Json::parse(real_files().read(path), path);
  } catch (const Error& error) {
    if (error.parts().code == "file.current_folder") throw;
    refuse("predict.no_run", path, error.parts().why, kNameRun);
  }
  const Json* job = run.is_object() ? run.find("job") : nullptr;
  if (job == nullptr || !job->is_object())
    refuse("predict.no_run", path, "the file has no object \"job\"", kNameRun);
  return run;
}

/// The job as predictions need it: no document is packed with others, and the
/// weights that training began with are not read, unless adapters stand beside
/// them.
Json for_predictions(Json job) {
  const Json* fields = job.find("fields");
  if (fields != nullptr && fields->is_object())
    for (const auto& [name, field] : fields->object()) {
      const Json* tokens = field.is_object() ? field.find("tokens") : nullptr;
      if (tokens == nullptr || !tokens->is_object()) continue;
      Json alone = *tokens;
      alone["pack"] = "none";
      alone["repack"] = false;
      alone["pack_window"] = 0;
      job["fields"][name]["tokens"] = std::move(alone);
    }
  const Json* model = job.find("model");
  if (model == nullptr || !model->is_object()) return job;
  const Json* lora = model->find("lora");
  if (lora == nullptr || lora->is_null()) job["model"]["path"] = "";
  return job;
}

std::vector<Json> statistics_of(const std::filesystem::path& folder,
                                const std::vector<Field>& fields) {
  const std::filesystem::path path = folder / "statistics.json";
  Json all{Json::Object{}};
  std::error_code none;
  if (std::filesystem::exists(path, none))
    all = Json::parse(real_files().read(path), path.string());
  // Of several sources, what differs is that of the first one.
  const Json* rest = all.find("sources");
  const bool mixed =
      rest != nullptr && rest->is_array() && !rest->array().empty();
  std::vector<Json> statistics;
  for (const Field& field : fields) {
    const Json* found = mixed ? rest->array()[0].find(field.name) : nullptr;
    if (found == nullptr) found = all.find(field.name);
    statistics.push_back(found == nullptr ? Json() : *found);
  }
  return statistics;
}

/// The names of the files that may hold a run's weights, the first that is
/// there counts.
constexpr const char* kWeights[] = {
    "weights/best.safetensors", "weights/last.safetensors", "model.safetensors",
    "adapter_model.safetensors", "adapter/adapter_model.safetensors"};

std::filesystem::path file_of_weights(const std::filesystem::path& folder) {
  std::error_code none;
  for (const char* name : kWeights)
    if (std::filesystem::exists(folder / name, none)) return folder / name;
  if (std::filesystem::exists(folder / "state.json", none))
    if (const std::string name = read_states(folder).newest.checkpoint;
        !name.empty())
      return folder / name;
  refuse("predict.no_weights", folder,
         "it holds neither weights nor a checkpoint",
         "resume the run until it has saved its model (--resume), or name "
         "another run");
}

}  // namespace

TrainedRun read_trained_run(const std::string& folder) {
  const Json about = document_of(folder);
  Json job = for_predictions(*about.find("job"));
  TrainedRun run{.folder = folder};
  if (const Json* carried = about.find("carried"))
    use_carried_files(*carried, run.folder, job);
  run.job = parse_job(job);
  if (run.job.model.none())
    refuse("predict.no_model", folder + "/run.json", "the job has no model",
           "name a run that has trained a model");
  run.statistics = statistics_of(folder, run.job.fields);
  if (const Json* columns = about.find("columns");
      columns != nullptr && columns->is_object())
    for (const auto& [name, type] : columns->object())
      if (type.is_string()) run.columns.emplace_back(name, type.string());
  return run;
}

FileOfWeights read_weights(const TrainedRun& run) {
  FileOfWeights weights{.path = file_of_weights(run.folder)};
  weights.file = map_data_file(weights.path);
  const std::span<const std::byte> bytes = weights.file->bytes();
  const SafetensorsView view = view_safetensors(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
      weights.path.string());
  for (const auto& [name, tensor] : weights_in(view))
    weights.state.tensors.push_back({"model." + name, tensor});
  return weights;
}

}  // namespace penstock
