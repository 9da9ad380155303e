#include "penstock/sources/kinds.h"

namespace penstock {

SourceKind postgres_source() {
  return {.name = "postgres",
          .shown = "PostgreSQL",
          .prefixes = {"postgresql://", "postgres://"},
          .example = "postgresql://host/base#table",
          .server = true,
          .to_run = "libpq5",
          .to_build = "libpq-dev",
          .settings =
              SettingsTable<SourceSpec>({.kind = "postgres", .connections = 2})
                  .text("uri", &SourceSpec::uri,
                        "postgres: a libpq connection string; secrets come "
                        "from libpq's own places")
                  .required()
                  .identity(Identity::written)
                  .not_empty()
                  .integer("connections", &SourceSpec::connections, 1, 64, "")
                  .identity(Identity::none)};
}

}  // namespace penstock
