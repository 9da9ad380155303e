#pragma once

#include <string>

namespace penstock {

/// What is shown and stored instead of a connection string that cannot be read:
/// any part of it may be a password.
inline constexpr const char* kHiddenConnection = "***";

/// A connection string of libpq (a URI, key=value pairs, or the name of a
/// database) as a message or a report may show it: "***" in place of each
/// secret. `kHiddenConnection` for what libpq would refuse, and where libpq may
/// read it differently from what was meant ("postgresql://u:a@b@host").
std::string shown_connection(const std::string& text);

/// The same connection without its secrets, to be stored with a run: libpq then
/// looks for them in its own places (PGPASSWORD, ~/.pgpass). An empty password
/// would not do, since it counts as one that is given. `kHiddenConnection`
/// where that is not possible.
std::string stored_connection(const std::string& text);

}  // namespace penstock
