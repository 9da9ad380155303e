#include "penstock/sources/kinds.h"

#include <algorithm>
#include <iterator>

#include "penstock/base/ascii.h"
#include "penstock/base/once.h"

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

namespace {

/// How a kind is made, which takes a while: of its settings, with their rules.
struct Maker {
  const char* name;
  SourceKind (*make)();
};
#define KIND(name) {#name, name##_source},
constexpr Maker kMakers[] = {PENSTOCK_SOURCE_KINDS(KIND)};
#undef KIND
constexpr std::size_t kCount = std::size(kMakers);

/// Those that nobody has asked for yet are empty.
std::vector<SourceKind>& kinds() {
  static std::vector<SourceKind> kinds(kCount);
  return kinds;
}

const SourceKind& made(std::size_t at) {
  static Once once[kCount];
  once[at].call([&] { kinds()[at] = kMakers[at].make(); });
  return kinds()[at];
}

}  // namespace

const std::vector<SourceKind>& source_kinds() {
  for (std::size_t at = 0; at < kCount; ++at) made(at);
  return kinds();
}

std::string source_examples() {
  std::string all;
  for (const SourceKind& kind : source_kinds())
    all += (all.empty() ? "" : " or ") + kind.example;
  return all;
}

const SourceKind* source_kind(const std::string& name) {
  const auto* found = std::ranges::find(kMakers, name, &Maker::name);
  return found == std::end(kMakers)
             ? nullptr
             : &made(static_cast<std::size_t>(found - kMakers));
}

const SourceKind* kind_of_file(const std::string& name) {
  const std::string lower = ascii_lower(name);
  for (const SourceKind& kind : source_kinds())
    for (const std::string& extension : kind.extensions)
      if (lower.ends_with(extension)) return &kind;
  return nullptr;
}

const SourceKind* kind_of_uri(const std::string& uri) {
  for (const SourceKind& kind : source_kinds())
    for (const std::string& prefix : kind.prefixes)
      if (uri.starts_with(prefix)) return &kind;
  return nullptr;
}

}  // namespace penstock
