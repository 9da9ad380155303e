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
                        "libpq connection string. Passwords are read where "
                        "libpq looks for them, such as ~/.pgpass")
                  .required()
                  .identity(Identity::written)
                  .not_empty()
                  .integer("connections", &SourceSpec::connections, 1, 64,
                           "Number of connections to the server, which all "
                           "read from one snapshot")
                  .identity(Identity::none)};
}

}  // namespace penstock
