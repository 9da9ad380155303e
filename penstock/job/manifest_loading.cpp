#include <algorithm>
#include <filesystem>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/user_file.h"
#include "penstock/job/manifest_rules.h"

// Rules of keys that say how rows are read.

namespace penstock {

void manifest_workers(ManifestJob& job, ManifestKey& of) {
  if (count_of(of.key, of.value) == 0) {
    of.why =
        "threads are native: as many as there are processors. 'loader.workers' "
        "= 0 would do all on the training thread";
    return;
  }
  job.set(of, "loader.workers", of.value);
}

/// It counts batches of each worker; ours counts all that are ready.
void manifest_prefetch(ManifestJob& job, ManifestKey& of) {
  const std::int64_t each = count_of(of.key, of.value);
  const Json* workers = job.first_of({"dataloader_num_workers", "num_workers"});
  const std::int64_t count =
      workers == nullptr ? 0 : count_of("num_workers", *workers);
  if (count == 0) {
    of.why = "it is per worker, and no number of them is given";
    return;
  }
  of.why = "per worker there, in all here";
  job.set(of, "loader.prefetch", each * count);
}

/// A model is trained by one process, so one device has the whole batch.
void manifest_batch_size(ManifestJob& job, ManifestKey& of) {
  if (of.value == Json("auto"))
    return leave_out(of, "batch sizes are not searched for: write a number");
  job.set(of, "loader.batch_size", of.value);
}

void manifest_drop_last(ManifestJob& job, ManifestKey& of) {
  if (is_true(of)) {
    of.why =
        "train batches are always full by default, and every held-out row is "
        "validated once";
    return;
  }
  job.set(of, "loader.tail", "exact");
}

/// Packed rows are full already, so there is no padding to save.
void manifest_group_by_length(ManifestJob& job, ManifestKey& of) {
  if (is_off(of.value)) {
    of.why = "it is off here too, unless the job sets it";
    return;
  }
  for (const std::string& name : job.fields_of("tokens")) {
    const Json* pack = job.at("fields." + name + ".tokens.pack");
    if (pack != nullptr && *pack == Json("none")) continue;
    of.why = "it has no effect: the samples of field '" + name +
             "' are packed, which leaves no padding to save";
    return;
  }
  const bool named = of.value.is_string();
  job.set(of, "loader.group_by_length", named ? Json(true) : of.value);
}

void manifest_sampling(ManifestJob& job, ManifestKey& of) {
  const std::string how = text_of(of);
  if (how == "group_by_length") return manifest_group_by_length(job, of);
  if (how == "random" || how == "sequential")
    return job.set(of, "loader.shuffle", how == "random");
  leave_out(of,
            "rows come in random or sequential order, or grouped by length");
}

void manifest_seed(ManifestJob& job, ManifestKey& of) {
  if (job.other("data_seed") == nullptr) job.set(of, "loader.seed", of.value);
  if (job.at("model.kind") != nullptr) job.set(of, "model.seed", of.value);
  if (of.settings.empty())
    of.why = "'data_seed' seeds the order, and the job has no model";
}

void manifest_data_seed(ManifestJob& job, ManifestKey& of) {
  job.set(of, "loader.seed", of.value);
}

/// A share of the rows is held out; a number of rows is not possible here.
void manifest_held_out(ManifestJob& job, ManifestKey& of) {
  if (is_off(of.value)) {
    of.why = "no rows are held out unless the job has a section 'split'";
    return;
  }
  if (job.at("split") != nullptr) {
    of.why = "the job's section 'split' is used";
    return;
  }
  const bool number = std::holds_alternative<double>(of.value.value()) ||
                      std::holds_alternative<std::int64_t>(of.value.value());
  if (!number)
    refuse_manifest(of.key, "found " + of.value.dump() + ", expected a number",
                    "write a share of the rows, such as 0.05");
  const double share = of.value.number();
  if (share >= 1)
    return leave_out(of,
                     "rows are held out as a share of all: write one below 1, "
                     "such as 0.05");
  if (share < 0)
    refuse_manifest(of.key, "found " + of.value.dump(),
                    "write a share of the rows, such as 0.05");
  job.set(of, "split.train", 1 - share);
  job.set(of, "split.val", of.value);
}

void manifest_device(ManifestJob& job, ManifestKey& of) {
  if (!of.value.is_string())
    refuse_manifest(of.key, "found " + of.value.dump() + ", expected a text",
                    "write \"cuda\", \"cuda:0\" or \"cpu\"");
  const std::string name = of.value.string();
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  if (kind == "auto") return job.set(of, "device", "auto");
  if (kind == "cpu") return job.set(of, "device", "cpu");
  if (kind != "cuda" && kind != "gpu")
    return leave_out(of, "there is no device '" + kind + "' here");
  if (colon == name.npos) return job.set(of, "device", "cuda");
  Json section;
  section["kind"] = "cuda";
  try {
    section["number"] = Json::parse(name.substr(colon + 1), of.key);
  } catch (const Error&) {
    refuse_manifest(of.key, "found " + of.value.dump(), "write \"cuda:0\"");
  }
  job.set(of, "device", std::move(section));
}

void manifest_accelerator(ManifestJob& job, ManifestKey& of) {
  if (job.other("device") == nullptr) return manifest_device(job, of);
  of.why = "'device' says it more exactly";
}

void manifest_no_gpu(ManifestJob& job, ManifestKey& of) {
  if (is_true(of)) return job.set(of, "device", "cpu");
  of.why = "a GPU is used where there is one, unless the job names a device";
}

namespace {

/// Whether rows of a data set that was saved have labels beside their tokens.
bool has_labels(const std::filesystem::path& folder) {
  const std::filesystem::path about = folder / "dataset_info.json";
  std::error_code unknown;
  if (!std::filesystem::exists(about, unknown)) return false;
  const Json info =
      Json::parse(read_user_file(about.string(), "cannot read the data set"),
                  about.string());
  const Json* features = info.is_object() ? info.find("features") : nullptr;
  return features != nullptr && features->is_object() &&
         features->find("labels") != nullptr;
}

}  // namespace

/// A folder of tokens is a source; any other folder is where stores go.
void manifest_tokens_cache(ManifestJob& job, ManifestKey& of) {
  if (std::holds_alternative<bool>(of.value.value())) {
    of.why = "rows are kept in a store wherever that pays ('loader.cache')";
    return;
  }
  if (!of.value.is_string())
    refuse_manifest(of.key, "found " + of.value.dump() + ", expected a folder",
                    "write its path");
  const std::filesystem::path folder = of.value.string();
  std::error_code unknown;
  if (!std::filesystem::exists(folder / "state.json", unknown))
    return job.set(of, "loader.cache_dir", of.value);
  job.set(of, "source.kind", "hf");
  job.set(of, "source.path", of.value);
  const bool labels = has_labels(folder);
  if (labels) of.why = "its labels say which tokens are targets";
  for (const std::string& name : job.fields_of("tokens")) {
    if (labels) job.set(of, "fields." + name + ".tokens.labels", "labels");
    job.set(of, "fields." + name + ".tokens.column", "input_ids");
    job.set(of, "fields." + name + ".tokens.tokenizer", Json());
  }
}

/// Into every spectrogram that the job does not mask already: two masks of each
/// kind, as wide as those of SpecAugment's policy LD for 80 bands (Park and
/// others, 2019).
void manifest_masks(ManifestJob& job, ManifestKey& of) {
  if (!is_true(of)) {
    of.why = "no masks are applied unless the job sets them";
    return;
  }
  const Json masks = Json::parse(
      R"({"spec_augment": {"time_masks": 2, "time_width": 100,
                           "frequency_masks": 2, "frequency_width": 27}})",
      "masks");
  of.why = "no field of the job is a spectrogram";
  for (const std::string& name : job.fields_of("audio")) {
    const std::string field = "fields." + name + ".audio.";
    if (job.at(field + "mel") == nullptr) continue;
    of.why.clear();
    const Json* before = job.at(field + "augment");
    Json all = before == nullptr ? Json(Json::Array{}) : *before;
    if (all.dump().find("\"spec_augment\"") != std::string::npos) {
      of.why = "field '" + name + "' is masked already, as the job says";
      continue;
    }
    all.push_back(masks);
    job.set(of, field + "augment", std::move(all));
  }
}

}  // namespace penstock
