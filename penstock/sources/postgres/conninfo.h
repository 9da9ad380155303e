#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <string_view>

namespace penstock::postgres {

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

/// The value of a keyword, "sslmode"; empty if none exists.
std::string value_of(const Options& options, std::string_view keyword);

/// Throws Error(request), postgres.uri, for a connection string that libpq
/// cannot read, or would read so that a piece of a password is shown as
/// something else. The table is not named: of "postgresql://u:a#b" it is a
/// piece of a password.
void check_readable(const std::string& uri);

}  // namespace penstock::postgres
