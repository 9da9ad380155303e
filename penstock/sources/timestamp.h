#pragma once

#include <optional>
#include <string_view>

namespace penstock {

/// Seconds since 1970-01-01 UTC of an ISO-8601 text, rounded once to float64;
/// nullopt when the text is anything else.
///
/// A date (2023-11-14), then perhaps 'T' or a space and a time (22:13 or
/// 22:13:20 or 22:13:20.25, up to 18 digits), then perhaps a zone (Z, +01:00,
/// +0100 or +01); without a zone it is UTC. The day must exist, years are 0001
/// to 9999, there are no leap seconds.
std::optional<double> timestamp_from(std::string_view text);

}  // namespace penstock
