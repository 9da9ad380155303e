#include "penstock/sources/files/file_source.h"
#include "penstock/sources/npy/npy_files.h"

namespace penstock {

// In the descriptor.
SourceKind npy_source();

namespace npy {

const files::FileKind& kind_of(const SourceSpec&) {
  static const files::FileKind kind{npy_source(), open_arrays, find_arrays};
  return kind;
}

}  // namespace npy
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::files::kFilePlugin<penstock::npy::kind_of>;
}
