#pragma once

#include <string>

namespace penstock {

/// A text as printf() would print it, however long.
///
/// Example: formatted("%.1f ms, %s", 2.25, "read") == "2.2 ms, read".
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* pattern, ...);

}  // namespace penstock
