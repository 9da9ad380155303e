#pragma once

#include <string>

#include "penstock/sources/postgres/types.h"
#include "penstock/sources/sources.h"

namespace penstock::postgres {

/// What pg_type says about a column's type beside its kind.
struct SqlType {
  char category =
      'U';           ///< typcategory: A array, E enum, R range, T interval...
  std::string base;  ///< as SQL writes it; of a domain, that at its end
  std::uint32_t oid = 0;  ///< of that
};

/// What is expected of a column that is read in this way, in words.
const char* expected_of(ReadAs as);

/// An SQL expression that makes of a column what `as` expects, where its own
/// type cannot be read so: "\"x\"[1]::float8" of an array. Empty if none
/// exists. `name` is the column as SQL writes it.
std::string cast_of(ReadAs as, Kind kind, const SqlType& type,
                    const std::string& name);

}  // namespace penstock::postgres
