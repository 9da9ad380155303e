#include "penstock/sources/files/file_settings.h"

namespace penstock {

SourceKind zarr_source() {
  SourceKind kind = file_kind("zarr", "Zarr", "zarr", {".zarr"},
                              SettingsTable<FileSettings>());
  kind.windows = true;
  kind.example = "zarr:FOLDER.zarr";
  return kind;
}

}  // namespace penstock
