#pragma once

#include "penstock/sources/files/file_settings.h"

namespace penstock::npy {

inline Json arrays_rule() {
  Json rule = settings::rule_of(
      "object",
      "Names of columns and the .npy file below \"path\" that holds each: "
      "{\"x\": \"x.npy\", \"y\": \"y.npy\"}. A pattern names several files, "
      "whose rows follow one another");
  rule["additionalProperties"] = settings::rule_of("string", "");
  return rule;
}

inline void read_arrays(Spec& spec, const SettingSchema& setting,
                        FileSettings& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  Spec arrays = spec.section(setting.key);
  for (const auto& [name, file] : found->object())
    to.arrays.emplace_back(name, arrays.text(name));
}

inline Json show_arrays(const FileSettings& from) {
  Json shown{Json::Object{}};
  for (const auto& [name, file] : from.arrays) shown[name] = file;
  return from.arrays.empty() ? Json() : shown;
}

/// `arrays`: which column is in which file.
inline void add_arrays(SettingsTable<FileSettings>& table) {
  table.setting("arrays", arrays_rule(), read_arrays, show_arrays);
}

}  // namespace penstock::npy
