#include "penstock/sources/kinds.h"

namespace penstock {

SourceKind sqlite_source() {
  return {.name = "sqlite",
          .shown = "SQLite",
          .prefixes = {"sqlite:"},
          .example = "sqlite:PATH#table",
          .to_run = "libsqlite3-0",
          .to_build = "libsqlite3-dev",
          .settings =
              SettingsTable<SourceSpec>({.kind = "sqlite"})
                  .text("path", &SourceSpec::path, "Path of the database file")
                  .required()
                  .identity(Identity::written)
                  .not_empty()};
}

}  // namespace penstock
