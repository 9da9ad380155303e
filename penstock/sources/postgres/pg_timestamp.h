#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::postgres {

/// A point in time as PostgreSQL counts it: from 2000-01-01 UTC, to the
/// microsecond, with two infinities.
class PgTimestamp {
 public:
  static PgTimestamp of_microseconds(std::int64_t since_2000);
  static PgTimestamp of_days(std::int32_t since_2000);
  /// The nearest microsecond to seconds since 1970; nullopt if none exists.
  static std::optional<PgTimestamp> at(double since_1970);
  friend bool operator==(const PgTimestamp&, const PgTimestamp&) = default;

  /// Since 1970-01-01 UTC, rounded once; nullopt for an infinity.
  std::optional<double> seconds() const;
  /// Since 2000-01-01 UTC, of a moment that `at` made.
  std::int64_t microseconds() const;
  /// "2026-01-01T00:00:41.123Z" (no Z without a zone), "2026-01-01" of a date,
  /// "infinity".
  std::string text(bool zone) const;

 private:
  std::int64_t seconds_ = 0;  // since 2000, rounded down
  std::int64_t micros_ = 0;   // and so many more
  int infinite_ = 0;          // -1 or 1: before or after all times
  bool date_ = false;
};

}  // namespace penstock::postgres
