#include "penstock/sources/arrow/parts.h"
#include "penstock/sources/files/file_settings.h"

namespace penstock {
namespace {

SourceKind arrow_kind(const std::string& name, const std::string& shown,
                      std::vector<std::string> extensions,
                      const SettingsTable<FileSettings>& own) {
  SourceKind kind = file_kind(name, shown, "arrow", std::move(extensions), own);
  kind.install =
      "pip install pyarrow; in a build from source, run tools/fetch_arrow and "
      "configure again";
  kind.choice = {.plugin = arrow_files::chosen_plugin,
                 .shown = arrow_files::chosen_way,
                 .store = arrow_files::chosen_store};
  return kind;
}

SettingsTable<FileSettings> typed_files() {
  SettingsTable<FileSettings> own;
  add_union(own);
  return own;
}

}  // namespace

SourceKind parquet_source() {
  return arrow_kind("parquet", "Parquet", {".parquet", ".pq"}, typed_files());
}

SourceKind arrow_source() {
  return arrow_kind("arrow", "Arrow IPC",
                    {".arrow", ".arrows", ".feather", ".ipc"}, typed_files());
}

SourceKind hf_source() {
  return arrow_kind("hf", "Hugging Face data sets", {},
                    SettingsTable<FileSettings>().text(
                        "part", &FileSettings::part,
                        "Name of the split to read, such as \"train\". "
                        "Default: the only split of the data set"));
}

}  // namespace penstock
