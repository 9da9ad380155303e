#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock::postgres {

/// What a message about a failure may name. Nothing here is a secret.
struct About {
  std::string doing;     ///< "cannot read table 'measurements'"
  std::string place;     ///< "postgresql://db.lab:5432/lab"
  std::string table;     ///< "lab.measurements"; may be empty
  std::string user;      ///< as far as known
  std::string database;  ///< likewise
  std::string sslmode;   ///< likewise
  /// The setting with SQL of the user's, which may write where all else only
  /// reads; empty: none.
  std::string own_sql = {};
};

/// Why the connection failed. libpq gives the cause only in words, so the words
/// are searched; an unknown cause is `postgres.connect`.
Error connection_failure(const About& about, const std::string& says);

/// Why a statement failed, by its SQLSTATE. Without one it was libpq that
/// failed: mostly because the connection is gone.
Error statement_failure(const About& about, std::string_view sqlstate,
                        const std::string& says);

/// A server from which nothing comes, and which takes no new connection.
Error silent_failure(const About& about, std::int64_t seconds);

/// What libpq or the server said, on one line and without the password.
std::string without_secret(std::string says, const std::string& password);

/// What was said, up to its first quotation mark: of a connection string that
/// cannot be read, any part may be quoted, with quotation marks of its own.
std::string without_quotes(const std::string& says);

}  // namespace penstock::postgres
