#include "penstock/sources/files/file_settings.h"

namespace penstock {
namespace {

Json ragged_rule() {
  Json rule = settings::rule_of(
      "object",
      "Data sets that hold rows of different lengths one after the other: the "
      "name of each, and the name of the data set with its row offsets, whose "
      "last entry is the end of the last row");
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
            "Group whose data sets are read. Default: \"/\", the whole file")
      .choice(
          "samples", &FileSettings::samples,
          {{"rows", "rows"}, {"groups", "groups"}, {"data_sets", "data_sets"}},
          "What a row is. rows: an index of the first dimension of the data "
          "sets; groups: a group inside `group`; data_sets: a data set inside "
          "`group`")
      .choice(
          "axis", &FileSettings::axis,
          {{"auto", "auto"}, {"first", "first"}, {"last", "last"}},
          "The dimension that counts rows. auto: the last one in MATLAB files, "
          "so that arrays have MATLAB's shape, and the first one in all others")
      .setting("ragged", ragged_rule(), read_ragged, show_ragged)
      .text("labels", &FileSettings::row_labels,
            "A file with one row for each row of all files, in the same order, "
            "such as their labels")
      .identity(Identity::written)
      .number("decoded_gib", &FileSettings::decoded_gib, -1, 1 << 20,
              "Memory for decoded chunks that will be needed again, in GiB. "
              "-1: 1 GiB, or an eighth of the free memory if that is less")
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
