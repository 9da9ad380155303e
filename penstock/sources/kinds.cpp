#include "penstock/sources/kinds.h"

#include <algorithm>

#include "penstock/base/ascii.h"

namespace penstock {

// One line for each kind: the function is in a descriptor.cpp.
#define PENSTOCK_SOURCE_KINDS(KIND) \
  KIND(sqlite)                      \
  KIND(postgres)                    \
  KIND(parquet)                     \
  KIND(arrow)                       \
  KIND(csv)                         \
  KIND(jsonl)                       \
  KIND(text)                        \
  KIND(token_store)                 \
  KIND(hf)                          \
  KIND(images)                      \
  KIND(hdf5)                        \
  KIND(audio)                       \
  KIND(npy)                         \
  KIND(zarr)                        \
  KIND(tfrecord)

#define KIND(name) SourceKind name##_source();
PENSTOCK_SOURCE_KINDS(KIND)
#undef KIND

const std::vector<SourceKind>& source_kinds() {
#define KIND(name) name##_source(),
  static const std::vector<SourceKind> kinds = {PENSTOCK_SOURCE_KINDS(KIND)};
#undef KIND
  return kinds;
}

std::string source_examples() {
  std::string all;
  for (const SourceKind& kind : source_kinds())
    all += (all.empty() ? "" : " or ") + kind.example;
  return all;
}

const SourceKind* source_kind(const std::string& name) {
  auto found = std::ranges::find(source_kinds(), name, &SourceKind::name);
  return found == source_kinds().end() ? nullptr : &*found;
}

const SourceKind* kind_of_file(const std::string& name) {
  const std::string lower = ascii_lower(name);
  for (const SourceKind& kind : source_kinds())
    for (const std::string& extension : kind.extensions)
      if (lower.ends_with(extension)) return &kind;
  return nullptr;
}

}  // namespace penstock
