#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/missing_value.h"

namespace penstock {

/// A part of a time that comes again: its place in the cycle as an angle.
enum class TimePart : std::uint8_t {
  hour,         ///< the time of day, fractions of hours included
  weekday,      ///< whole days since Monday
  day_of_year,  ///< whole days since January 1, of 365 or 366
};

/// A column of times -> seconds since 1970 UTC, float64 []; or with parts the
/// sine and cosine of each, float32 [2 x parts].
struct Times {
  std::string column;
  std::vector<std::string> parts;  ///< names of TimePart, none of them twice
  MissingValue missing = {};       ///< of NULL; with parts bad, zero or mask
};

/// The kind `time`. The column holds timestamps or dates, texts in ISO 8601, or
/// numbers, which are seconds since 1970. All parts are those of UTC. A row
/// without a time is bad, or what `missing` says; with a mask there is the
/// tensor NAME_mask, float32 [], 1 where a row has a time.
std::shared_ptr<const FieldKind> make_time(std::string name, Times time);

/// In turns, from 0 to below 1, of a time in seconds since 1970 UTC: the
/// proleptic Gregorian calendar, without leap seconds.
double turns_of(TimePart part, double seconds);

}  // namespace penstock
