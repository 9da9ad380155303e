#include "penstock/sources/plugin.h"

#include "penstock/base/plugin.h"

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

const SourcePlugin& load_part(
    const std::string& kind,
    const std::vector<std::filesystem::path>& folders) {
  Packages packages = packages_of(kind);
  return load_plugin<SourcePlugin>(
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
