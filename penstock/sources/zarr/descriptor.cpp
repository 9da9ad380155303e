#include "penstock/sources/files/file_settings.h"

namespace penstock {

SourceKind zarr_source() {
  SourceKind kind = file_kind("zarr", "Zarr", "zarr", {".zarr"},
                              SettingsTable<FileSettings>());
  kind.windows = true;
  kind.example = "zarr:FOLDER.zarr";
  kind.to_build = "zlib1g-dev libzstd-dev liblz4-dev libblosc-dev";
  return kind;
}

}  // namespace penstock
