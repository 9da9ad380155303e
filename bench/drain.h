#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock {

/// What the database's own library hands out, and nothing done with it: the
/// floor of reading. Each looks at the columns id, receivers, tx_lat and
/// tx_lon of every row of `table`.
struct Drained {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  ///< of all values
};

/// One connection, a plain loop over sqlite3_step().
Drained drain_sqlite(const std::string& path, const std::string& table);

/// Binary COPY, as fast as libpq takes it in; the table's pages are cut into
/// one range per connection, each with a thread. nullopt in a build without
/// libpq.
std::optional<Drained> drain_postgres(const std::string& uri,
                                      const std::string& table,
                                      int connections);

}  // namespace penstock
