#include "penstock/job/manifest.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/user_file.h"
#include "penstock/job/document.h"
#include "penstock/job/schema.h"
#include "penstock/job/yaml.h"

// Every key has one rule, a line of the table below. A rule looks at the whole
// manifest where keys belong together (workers and prefetch_factor), and says
// which settings it made, or why it made none.

namespace penstock {
namespace {

constexpr const char* kParts[] = {"training", "config"};
constexpr const char* kSections[] = {"source", "sources", "fields",
                                     "split",  "loader",  "device",
                                     "model",  "train",   "output"};

[[noreturn]] void refuse(const std::string& key, std::string why,
                         std::string next) {
  throw Error(ErrorKind::request, {.code = "manifest.value",
                                   .what = "cannot use the manifest",
                                   .where = key,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// The setting at "section.key", where there is one.
const Json* setting_at(const Json& document, const std::string& path) {
  const Json* at = &document;
  for (std::size_t begin = 0; at != nullptr && begin <= path.size();) {
    const std::size_t dot = std::min(path.find('.', begin), path.size());
    at = at->is_object() ? at->find(path.substr(begin, dot - begin)) : nullptr;
    begin = dot + 1;
  }
  return at;
}

/// True where this program's jobs have such a setting of a section.
bool has_setting(const std::string& path) {
  static const Json schema = Json::parse(job_schema(), "the schema");
  const std::size_t dot = path.find('.');
  const Json* section = schema.find("properties")->find(path.substr(0, dot));
  if (section == nullptr) return false;
  if (const Json* forms = section->find("anyOf"))
    section = &forms->array().back();  // the full one
  const Json* keys = section->find("properties");
  return keys != nullptr && keys->find(path.substr(dot + 1)) != nullptr;
}

// Two keys may make the same setting, if they agree: `made_` has the key that
// made each, so that the one which came second is refused with both names.
class Applying {
 public:
  Applying(const std::map<std::string, Json>& all, Json& document)
      : all_(all), document_(document) {}

  /// Another key of the manifest.
  const Json* other(const std::string& key) const {
    auto found = all_.find(key);
    return found == all_.end() || found->second.is_null() ? nullptr
                                                          : &found->second;
  }
  void set(ManifestKey& of, const std::string& path, Json value) {
    Json* at = &document_;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = path.find('.', begin)) != path.npos;
         begin = dot + 1)
      at = &(*at)[path.substr(begin, dot - begin)];
    const std::string key = path.substr(begin);
    if (!at->is_object() && !at->is_null())
      refuse(of.key,
             "the job's '" + path.substr(0, begin ? begin - 1 : 0) + "' is " +
                 at->dump() + ", not a section",
             "write it as a section");
    auto before = made_.find(path);
    if (before != made_.end() && *at->find(key) != value)
      refuse(of.key,
             "the key sets " + path + " " + value.dump() + ", but '" +
                 before->second + "' sets it to " + at->find(key)->dump(),
             "leave one of the two out");
    made_[path] = of.key;
    of.settings.push_back(path + " = " + value.dump());
    (*at)[key] = std::move(value);
  }
  const Json* at(const std::string& path) const {
    return setting_at(document_, path);
  }
  /// Names of fields of this kind, as the job writes them.
  std::vector<std::string> fields_of(const char* kind) const {
    std::vector<std::string> names;
    const Json* fields = document_.find("fields");
    if (fields == nullptr || !fields->is_object()) return names;
    for (const auto& [name, field] : fields->object())
      if (field.is_object() && field.find(kind) != nullptr)
        names.push_back(name);
    return names;
  }

 private:
  const std::map<std::string, Json>& all_;
  Json& document_;
  std::map<std::string, std::string> made_;  // by setting: the key
};

using Rule = std::function<void(Applying&, ManifestKey&)>;

bool is_true(const ManifestKey& of) {
  if (!std::holds_alternative<bool>(of.value.value()))
    refuse(of.key, "found " + of.value.dump() + ", expected true or false",
           "write true or false");
  return std::get<bool>(of.value.value());
}

std::int64_t count_of(const std::string& key, const Json& value) {
  if (!std::holds_alternative<std::int64_t>(value.value()) ||
      value.integer() < 0)
    refuse(key, "found " + value.dump() + ", expected a number, 0 or more",
           "write a whole number");
  return value.integer();
}

Rule becomes(const char* setting) {
  return [setting](Applying& to, ManifestKey& of) {
    if (!has_setting(setting)) {
      of.understood = false;
      of.why = std::string("this program has no ") + setting;
      return;
    }
    to.set(of, setting, of.value);
  };
}

/// As becomes(), of a key that asks for nothing where it is false.
Rule if_true(const char* setting, Json value) {
  return [setting, value = std::move(value)](Applying& to, ManifestKey& of) {
    if (!is_true(of)) {
      of.why = "it is off here too, unless the job sets it";
      return;
    }
    if (has_setting(setting)) return to.set(of, setting, value);
    of.understood = false;
    of.why = std::string("this program has no ") + setting;
  };
}

Rule means_nothing(const char* why) {
  return [why](Applying&, ManifestKey& of) { of.why = why; };
}

/// Into every field of a kind.
Rule of_fields(const char* kind, const char* setting) {
  return [kind, setting](Applying& to, ManifestKey& of) {
    for (const std::string& name : to.fields_of(kind))
      to.set(of, "fields." + name + "." + kind + "." + setting, of.value);
    if (of.settings.empty())
      of.why = std::string("the job has no field of the kind '") + kind + "'";
  };
}

/// Bins of packed samples are full, whatever is beside what in them.
void group_by_length(Applying& to, ManifestKey& of) {
  for (const std::string& name : to.fields_of("tokens")) {
    const Json* pack = to.at("fields." + name + ".tokens.pack");
    if (pack != nullptr && *pack == Json("none")) continue;
    of.why = "the key has no effect: the samples of field '" + name +
             "' are packed, so there is no padding to save";
    return;
  }
  to.set(of, "loader.group_by_length", of.value);
}

/// Into every spectrogram that the job does not mask already: two masks of each
/// kind, as wide as those of SpecAugment's policy LD for 80 bands (Park and
/// others, 2019).
void masks_of_spectrograms(Applying& to, ManifestKey& of) {
  if (!is_true(of)) {
    of.why = "no masks are applied unless the job sets them";
    return;
  }
  const Json masks = Json::parse(
      R"({"spec_augment": {"time_masks": 2, "time_width": 100,
                           "frequency_masks": 2, "frequency_width": 27}})",
      "masks");
  of.why = "the job has no spectrogram field";
  for (const std::string& name : to.fields_of("audio")) {
    const std::string field = "fields." + name + ".audio.";
    if (to.at(field + "mel") == nullptr) continue;
    of.why.clear();
    const Json* before = to.at(field + "augment");
    Json all = before == nullptr ? Json(Json::Array{}) : *before;
    if (all.dump().find("\"spec_augment\"") != std::string::npos) {
      of.why = "field '" + name + "' is already masked by the job";
      continue;
    }
    all.push_back(masks);
    to.set(of, field + "augment", std::move(all));
  }
}

void workers(Applying& to, ManifestKey& of) {
  if (count_of(of.key, of.value) == 0) {
    of.why =
        "workers are native threads, one per processor. 'loader.workers' = 0 "
        "would do all work on the training thread";
    return;
  }
  to.set(of, "loader.workers", of.value);
}

/// It counts batches of each worker; ours counts all that are ready.
void prefetch(Applying& to, ManifestKey& of) {
  const std::int64_t each = count_of(of.key, of.value);
  const Json* workers = nullptr;
  for (const char* key : {"dataloader_num_workers", "num_workers"})
    if (workers == nullptr) workers = to.other(key);
  const std::int64_t count =
      workers == nullptr ? 0 : count_of("num_workers", *workers);
  if (count == 0) {
    of.why = "the value is per worker, and the number of workers is not given";
    return;
  }
  of.why = "per worker there, in total here";
  to.set(of, "loader.prefetch", each * count);
}

void mixed_precision(Applying& to, ManifestKey& of) {
  if (!is_true(of)) {
    of.why = "it is off here too, unless the job sets it";
    return;
  }
  const Json* bfloat16 = to.other("bf16");
  const bool brain = bfloat16 != nullptr && *bfloat16 == Json(true);
  to.set(of, "train.precision", brain ? "bfloat16" : "float16");
}

void optimizer(Applying&, ManifestKey& of) {
  const std::string name =
      of.value.is_string() ? of.value.string() : of.value.dump();
  if (name == "adamw" || name.starts_with("adamw_torch") ||
      name == "adamw_hf") {
    of.why = "models are trained with AdamW";
    return;
  }
  of.understood = false;
  of.why =
      "models are trained with AdamW. Only your own module can bring another "
      "optimizer";
}

void device(Applying& to, ManifestKey& of) {
  if (!of.value.is_string())
    refuse(of.key, "found " + of.value.dump() + ", expected a text",
           "write \"cuda\", \"cuda:0\" or \"cpu\"");
  const std::string name = of.value.string();
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  if (kind == "auto") return to.set(of, "device", "auto");
  if (kind == "cpu") return to.set(of, "device", "cpu");
  if (kind != "cuda" && kind != "gpu") {
    of.understood = false;
    of.why = "there is no device '" + kind + "'";
    return;
  }
  if (colon == name.npos) return to.set(of, "device", "cuda");
  Json section;
  section["kind"] = "cuda";
  try {
    section["number"] = Json::parse(name.substr(colon + 1), of.key);
  } catch (const Error&) {
    refuse(of.key, "found " + of.value.dump(), "write \"cuda:0\"");
  }
  to.set(of, "device", std::move(section));
}

void accelerator(Applying& to, ManifestKey& of) {
  if (to.other("device") == nullptr) return device(to, of);
  of.why = "'device' is more exact";
}

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

/// A folder of tokens is a source as it lies, any other is where stores go.
void tokens_cache(Applying& to, ManifestKey& of) {
  if (std::holds_alternative<bool>(of.value.value())) {
    of.why = "rows are kept in a store where that pays off ('loader.cache')";
    return;
  }
  if (!of.value.is_string())
    refuse(of.key, "found " + of.value.dump() + ", expected a folder",
           "write its path");
  const std::filesystem::path folder = of.value.string();
  std::error_code unknown;
  if (!std::filesystem::exists(folder / "state.json", unknown))
    return to.set(of, "loader.cache_dir", of.value);
  to.set(of, "source.kind", "hf");
  to.set(of, "source.path", of.value);
  const bool labels = has_labels(folder);
  if (labels) of.why = "the labels mark the tokens that are targets";
  for (const std::string& name : to.fields_of("tokens")) {
    if (labels) to.set(of, "fields." + name + ".tokens.labels", "labels");
    to.set(of, "fields." + name + ".tokens.column", "input_ids");
    to.set(of, "fields." + name + ".tokens.tokenizer", Json());
  }
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> all = {
      {"accelerator", accelerator},
      {"batch_size", becomes("loader.batch_size")},
      {"bf16", if_true("train.precision", "bfloat16")},
      {"dataloader_num_workers", workers},
      {"dataloader_persistent_workers",
       means_nothing("threads live as long as their loader")},
      {"dataloader_prefetch_factor", prefetch},
      {"device", device},
      {"encoder_type",
       means_nothing("the job's section 'model' names the model")},
      {"epochs", becomes("train.epochs")},
      {"fp16", if_true("train.precision", "float16")},
      {"gradient_accumulation_steps", becomes("train.accumulate")},
      {"gradient_checkpointing",
       if_true("train.gradient_checkpointing", Json(true))},
      {"group_by_length", group_by_length},
      {"image_size", of_fields("image", "size")},
      {"learning_rate", becomes("train.lr")},
      {"max_seq_length", of_fields("tokens", "max_length")},
      {"num_workers", workers},
      {"optim", optimizer},
      {"persistent_workers",
       means_nothing("threads live as long as their loader")},
      {"pin_memory",
       means_nothing(
           "batches are always copied from pinned memory where that helps")},
      {"prefetch_factor", prefetch},
      {"preload_to_gpu", if_true("loader.cache", "device")},
      {"pretokenized_cache", tokens_cache},
      {"profile_gpu_util",
       means_nothing("every run measures it: report.json, penstock explain")},
      {"profile_performance",
       means_nothing("every run measures it: report.json, penstock explain")},
      {"stage_dir", becomes("source.stage")},
      {"use_amp", mixed_precision},
      {"use_sdpa", means_nothing("models compute attention with PyTorch's "
                                 "scaled_dot_product_attention")},
      {"use_specaugment", masks_of_spectrograms},
      {"use_tf32", becomes("train.tf32")},
      {"val_batch_size", becomes("loader.val_batch_size")},
  };
  return all;
}

bool is_section(const std::string& key, const Json& value) {
  return std::ranges::find(kSections, key) != std::end(kSections) &&
         (value.is_object() || value.is_array());
}

/// Into what the job has already.
void merge(Json& into, const Json& more) {
  if (!into.is_object() || !more.is_object()) {
    into = more;
    return;
  }
  for (const auto& [key, value] : more.object()) merge(into[key], value);
}

/// The keys of one level, `prefix` in front of their names.
void collect(const Json& level, const std::string& prefix,
             std::vector<ManifestKey>& keys, Json& document) {
  for (const auto& [key, value] : level.object()) {
    if (std::ranges::find(kParts, key) != std::end(kParts) &&
        value.is_object() && prefix.empty()) {
      collect(value, key + ".", keys, document);
      continue;
    }
    ManifestKey& made = keys.emplace_back(ManifestKey{prefix + key, value});
    if (!is_section(key, value)) continue;
    merge(document[key], value);
    made.settings.push_back(key);
  }
}

std::string name_in(const ManifestKey& of) {
  return of.key.substr(of.key.find('.') + 1);
}

}  // namespace

std::string ManifestKey::text() const {
  std::string line = "manifest: " + key;
  const bool section = settings.size() == 1 && !value.is_null() &&
                       (value.is_object() || value.is_array()) &&
                       settings[0] == name_in(*this);
  if (section) return line + ": a section of the job, copied";
  line += " = " + value.dump();
  if (!understood) return line + " IS NOT USED: " + why;
  if (settings.empty()) return line + ": no setting is needed: " + why;
  for (std::size_t s = 0; s < settings.size(); ++s)
    line += (s == 0 ? " -> " : ", ") + settings[s];
  return line + (why.empty() ? "" : " (" + why + ")");
}

std::vector<std::string> manifest_keys() {
  std::vector<std::string> keys;
  for (const auto& [key, rule] : rules()) keys.push_back(key);
  return keys;
}

Json read_manifest(const std::string& path) {
  const std::string text = read_user_file(path, "cannot read the manifest");
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != text.npos &&
                    (text[begin] == '{' || text.substr(begin, 2) == "//");
  Json made = json ? read_settings(path) : parse_yaml(text, path);
  if (!made.is_object())
    refuse(path,
           "the value is " + std::string(made.type_name()) +
               ", expected keys with values",
           "write \"key: value\" lines, or a JSON object");
  return made;
}

std::vector<ManifestKey> apply_manifest(const Json& manifest, Json& document) {
  if (document.is_null()) document = Json(Json::Object{});
  if (!document.is_object())
    refuse("the job",
           "the value is " + std::string(document.type_name()) +
               ", expected an object",
           "write a job file");
  if (const Json* source = document.find("source");
      source != nullptr && source->is_string())  // keys may set parts of it
    document["source"] = source_section(parse_source_spec(*source, "source"));
  std::vector<ManifestKey> keys;
  collect(manifest, "", keys, document);
  std::map<std::string, Json> all;
  for (const ManifestKey& key : keys) {
    auto [at, fresh] = all.emplace(name_in(key), key.value);
    if (!fresh && at->second != key.value)
      refuse(key.key,
             "the value is " + key.value.dump() + " there, but " +
                 at->second.dump() + " elsewhere in the manifest",
             "leave one of the two out");
  }
  Applying to(all, document);
  // What other keys look at first: which tokens there are.
  std::stable_partition(keys.begin(), keys.end(), [](const ManifestKey& key) {
    return name_in(key) == "pretokenized_cache";
  });
  for (ManifestKey& key : keys) {
    if (!key.settings.empty()) continue;  // a section
    if (key.value.is_null()) {
      key.why = "the value is null";
      continue;
    }
    auto rule = rules().find(name_in(key));
    if (rule != rules().end()) {
      rule->second(to, key);
      continue;
    }
    key.understood = false;
    const std::string near = nearest(name_in(key), manifest_keys());
    key.why = "the key is unknown" +
              (near.empty() ? "" : ": did you mean '" + near + "'?");
  }
  return keys;
}

}  // namespace penstock
