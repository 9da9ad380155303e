#include "penstock/sources/files/file_source.h"
#include "penstock/sources/zarr/zarr_files.h"

namespace penstock {

// In the descriptor.
SourceKind zarr_source();

namespace zarr {

const files::FileKind& kind_of(const SourceSpec&) {
  static const files::FileKind kind{zarr_source(), open_stores, find_stores};
  return kind;
}

}  // namespace zarr
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::files::kFilePlugin<penstock::zarr::kind_of>;
}
