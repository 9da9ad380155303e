#include "penstock/sources/part.h"

#include "penstock/base/part.h"

namespace penstock {
namespace {

/// The packages that a kind's library comes in, as Debian calls them.
struct Packages {
  std::string to_run;
  std::string to_build;
};

Packages packages_of(const std::string& kind) {
  if (kind == "postgres") return {"libpq5", "libpq-dev"};
  return {"libsqlite3-0", "libsqlite3-dev"};
}

}  // namespace

const SourcePart& load_part(const std::string& kind,
                            const std::vector<std::filesystem::path>& folders) {
  Packages packages = packages_of(kind);
  return load_face<SourcePart>(
      {.library = "libpenstock_source_" + kind + ".so",
       .entry = kSourcePartEntry,
       .shown = "the part for " + kind + " sources",
       .kind = ErrorKind::source,
       .code = "source",
       .install = "install " + packages.to_run +
                  " (Debian, Ubuntu: apt-get install " + packages.to_run +
                  "); a build from source needs " + packages.to_build +
                  "; Python's wheel holds both: install that anew"},
      folders);
}

}  // namespace penstock
