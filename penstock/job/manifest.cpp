#include "penstock/job/manifest.h"

#include <algorithm>
#include <map>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/user_file.h"
#include "penstock/job/document.h"
#include "penstock/job/manifest_rules.h"
#include "penstock/job/yaml.h"

namespace penstock {
namespace {

constexpr const char* kParts[] = {
    "training",    "config",      "training_args",      "training_arguments",
    "lora_config", "peft_config", "quantization_config"};
constexpr const char* kSections[] = {"source", "sources", "fields",
                                     "split",  "loader",  "device",
                                     "model",  "train",   "output"};

/// A pickle by itself, or in the archive that torch.save() writes.
bool is_pickle(const std::string& text) {
  return text.starts_with("PK\x03\x04") || text.starts_with("\x80");
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
  for (const auto* table :
       {&manifest_table_of_runs(), &manifest_table_of_text()})
    for (const ManifestEntry& entry : *table)
      keys.insert(keys.end(), entry.keys.begin(), entry.keys.end());
  std::ranges::sort(keys);
  return keys;
}

Json read_manifest(const std::string& path) {
  const std::string text = read_user_file(path, "cannot read the manifest");
  if (is_pickle(text))
    refuse_manifest(
        path,
        "the file is a pickle of Python, such as training_args.bin, "
        "which runs code when it is read",
        "if you trust the file, write it as JSON: "
        "open(\"run.json\", \"w\").write(torch.load(\"" +
            path + "\", weights_only=False).to_json_string())");
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != text.npos &&
                    (text[begin] == '{' || text.substr(begin, 2) == "//");
  Json made = json ? read_settings(path) : parse_yaml(text, path);
  if (!made.is_object())
    refuse_manifest(path,
                    "found " + std::string(made.type_name()) +
                        ", expected keys with values",
                    "write \"key: value\" lines, or a JSON object");
  return made;
}

std::vector<ManifestKey> apply_manifest(const Json& manifest, Json& document) {
  if (document.is_null()) document = Json(Json::Object{});
  if (!document.is_object())
    refuse_manifest(
        "the job",
        "found " + std::string(document.type_name()) + ", expected an object",
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
      refuse_manifest(key.key,
                      "found " + key.value.dump() +
                          ", but the manifest sets the same key to " +
                          at->second.dump() + " elsewhere",
                      "leave one of them out");
  }
  ManifestJob job(all, document);
  std::stable_partition(keys.begin(), keys.end(), [&](const ManifestKey& key) {
    const ManifestEntry* entry = manifest_entry(name_in(key));
    return entry != nullptr && entry->first;
  });
  for (ManifestKey& key : keys) {
    if (!key.settings.empty()) continue;  // a section
    const ManifestEntry* entry = manifest_entry(name_in(key));
    if (entry == nullptr) {
      const std::string near = nearest(name_in(key), manifest_keys());
      leave_out(key,
                "the key is unknown" +
                    (near.empty() ? "" : ": did you mean '" + near + "'?"));
    } else if (key.value.is_null()) {
      key.why = "it is null";
    } else {
      entry->rule(job, key);
    }
  }
  return keys;
}

}  // namespace penstock
