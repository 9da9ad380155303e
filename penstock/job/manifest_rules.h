#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "penstock/job/manifest_key.h"

namespace penstock {

/// A manifest on its way into a job: what rules may look at, and set. One
/// thread.
class ManifestJob {
 public:
  /// `all`: the keys of the manifest without what is in front of their names.
  /// Both must outlive this object.
  ManifestJob(const std::map<std::string, Json>& all, Json& document)
      : all_(all), document_(document) {}

  /// The value of another key of the manifest; nullptr if it is missing or
  /// null.
  const Json* other(const std::string& key) const;
  /// The value of the first of these keys that the manifest has.
  const Json* first_of(const std::vector<std::string>& keys) const;
  /// The job's setting at a path such as "loader.batch_size", or nullptr.
  const Json* at(const std::string& path) const;
  /// Sets "section.key". Throws Error(request), code manifest.value, if another
  /// key of the manifest set it to another value.
  void set(ManifestKey& of, const std::string& path, Json value);
  /// Names of the job's fields of this kind.
  std::vector<std::string> fields_of(const char* kind) const;

 private:
  const std::map<std::string, Json>& all_;
  Json& document_;
  std::map<std::string, std::string> made_;  // by setting: the key
};

/// What a key becomes: sets settings of the job, or `why` it sets none.
using ManifestRule = std::function<void(ManifestJob& job, ManifestKey& of)>;

/// Keys that mean the same, and what they become.
struct ManifestEntry {
  std::vector<std::string> keys;
  ManifestRule rule;
  bool first = false;  ///< it makes sections of which other rules set parts
};
/// Every key that is understood, once: of a run, and of language models.
const std::vector<ManifestEntry>& manifest_table_of_runs();
const std::vector<ManifestEntry>& manifest_table_of_text();
/// The entry of a key; nullptr: it is not understood.
const ManifestEntry* manifest_entry(const std::string& key);

/// Throws Error(request), code manifest.value.
[[noreturn]] void refuse_manifest(const std::string& key, std::string why,
                                  std::string next);
/// The key without "training." or "config.".
std::string name_in(const ManifestKey& of);
/// The key is not used, for this reason.
void leave_out(ManifestKey& of, std::string why);
/// Values of a key. Throw Error(request), code manifest.value.
bool is_true(const ManifestKey& of);
std::int64_t count_of(const std::string& key, const Json& value);
std::string text_of(const ManifestKey& of);
/// False, null, 0, "", "no", "none", [] and {}: ways to switch something off.
bool is_off(const Json& value);

/// The key is a setting of ours.
ManifestRule becomes(std::string setting);
/// As becomes(), but a value that is also our default sets nothing: models
/// without the setting then stay usable.
ManifestRule becomes_unless(std::string setting, Json as_default);
/// True makes the setting this value.
ManifestRule if_true(std::string setting, Json value);
/// Nothing has to be set, for this reason.
ManifestRule no_effect(std::string why);
/// What is asked for does not exist here; a value that is_off() asks for
/// nothing.
ManifestRule not_here(std::string why);
/// Only this value exists here.
ManifestRule always(Json value, std::string why);
/// Set in every field of a kind.
ManifestRule of_fields(const char* kind, const char* setting);

// Rules of single keys, by their names.

// manifest_loading.cpp
void manifest_workers(ManifestJob& job, ManifestKey& of);
void manifest_prefetch(ManifestJob& job, ManifestKey& of);
void manifest_batch_size(ManifestJob& job, ManifestKey& of);
void manifest_drop_last(ManifestJob& job, ManifestKey& of);
void manifest_group_by_length(ManifestJob& job, ManifestKey& of);
void manifest_sampling(ManifestJob& job, ManifestKey& of);
void manifest_seed(ManifestJob& job, ManifestKey& of);
void manifest_data_seed(ManifestJob& job, ManifestKey& of);
void manifest_held_out(ManifestJob& job, ManifestKey& of);
void manifest_device(ManifestJob& job, ManifestKey& of);
void manifest_accelerator(ManifestJob& job, ManifestKey& of);
void manifest_no_gpu(ManifestJob& job, ManifestKey& of);
void manifest_tokens_cache(ManifestJob& job, ManifestKey& of);
void manifest_masks(ManifestJob& job, ManifestKey& of);

// manifest_training.cpp
void manifest_epochs(ManifestJob& job, ManifestKey& of);
void manifest_max_steps(ManifestJob& job, ManifestKey& of);
void manifest_warmup_steps(ManifestJob& job, ManifestKey& of);
void manifest_warmup_ratio(ManifestJob& job, ManifestKey& of);
void manifest_schedule(ManifestJob& job, ManifestKey& of);
void manifest_bfloat16(ManifestJob& job, ManifestKey& of);
void manifest_mixed_precision(ManifestJob& job, ManifestKey& of);
void manifest_optimizer(ManifestJob& job, ManifestKey& of);
void manifest_checkpointing(ManifestJob& job, ManifestKey& of);
void manifest_evaluate(ManifestJob& job, ManifestKey& of);
void manifest_evaluate_steps(ManifestJob& job, ManifestKey& of);
void manifest_save(ManifestJob& job, ManifestKey& of);
void manifest_save_steps(ManifestJob& job, ManifestKey& of);
void manifest_metric(ManifestJob& job, ManifestKey& of);
void manifest_report_to(ManifestJob& job, ManifestKey& of);

// manifest_text.cpp
void manifest_base_model(ManifestJob& job, ManifestKey& of);
void manifest_data_sets(ManifestJob& job, ManifestKey& of);
void manifest_named_data_set(ManifestJob& job, ManifestKey& of);
void manifest_stage(ManifestJob& job, ManifestKey& of);
void manifest_packing(ManifestJob& job, ManifestKey& of);
void manifest_adapter(ManifestJob& job, ManifestKey& of);
void manifest_lora_targets(ManifestJob& job, ManifestKey& of);
void manifest_four_bits(ManifestJob& job, ManifestKey& of);
void manifest_four_bit_type(ManifestJob& job, ManifestKey& of);
void manifest_double_quantization(ManifestJob& job, ManifestKey& of);
void manifest_compute_dtype(ManifestJob& job, ManifestKey& of);
/// A key of a LoRA adapter: `setting` of "model.lora".
ManifestRule of_lora(std::string setting);

}  // namespace penstock
