#include "penstock/sources/files/file_settings.h"

namespace penstock {
namespace {

Json ragged_rule() {
  Json rule = settings::rule_of(
      "object",
      "data set of values to data set of offsets, which cut the values into "
      "rows of any length: where each begins, and where the last one ends");
  rule["additionalProperties"] = settings::rule_of("string", "");
  return rule;
}

void read_ragged(Spec& spec, const SettingSchema& setting, FileSettings& to) {
  const Json* found = spec.raw(setting.key);
  if (found == nullptr) return;
  Spec pairs = spec.section(setting.key);
  for (const auto& [values, offsets] : found->object())
    to.ragged.emplace_back(values, pairs.text(values));
}

Json show_ragged(const FileSettings& from) {
  Json shown{Json::Object{}};
  for (const auto& [values, offsets] : from.ragged) shown[values] = offsets;
  return from.ragged.empty() ? Json() : shown;
}

SettingsTable<FileSettings> hdf5_settings() {
  return SettingsTable<FileSettings>()
      .text("group", &FileSettings::group,
            "the group whose data sets are read; default: \"/\", all of them")
      .choice(
          "samples", &FileSettings::samples,
          {{"rows", "rows"}, {"groups", "groups"}, {"data_sets", "data_sets"}},
          "what a row is: along the first dimension of data sets; a group "
          "in `group`; a data set in it")
      .choice("axis", &FileSettings::axis,
              {{"auto", "auto"}, {"first", "first"}, {"last", "last"}},
              "the dimension that counts rows; auto: the first one, and the "
              "last one in files of MATLAB, whose arrays are then as MATLAB "
              "shows them")
      .setting("ragged", ragged_rule(), read_ragged, show_ragged)
      .text("labels", &FileSettings::row_labels,
            "a file whose rows stand beside those of all files, in their order")
      .identity(Identity::written)
      .number("decoded_gib", &FileSettings::decoded_gib, -1, 1 << 20,
              "memory for decoded chunks that are needed again, in GiB; -1: 1, "
              "or an eighth of what is free")
      .identity(Identity::none);
}

}  // namespace

SourceKind hdf5_source() {
  SourceKind kind =
      file_kind("hdf5", "HDF5", "hdf5",
                {".h5", ".hdf5", ".he5", ".hdf", ".mat"}, hdf5_settings());
  kind.windows = true;
  kind.to_run = "libhdf5-103-1";
  kind.to_build = "libhdf5-dev libdeflate-dev liblz4-dev libblosc-dev";
  return kind;
}

}  // namespace penstock
