#include "penstock/sources/npy/array_paths.h"

namespace penstock {

SourceKind npy_source() {
  SettingsTable<FileSettings> own;
  npy::add_arrays(own);
  SourceKind kind = file_kind("npy", "arrays of numpy and safetensors", "npy",
                              {".npy", ".npz", ".safetensors"}, own);
  kind.windows = true;
  return kind;
}

}  // namespace penstock
