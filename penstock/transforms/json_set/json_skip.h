#pragma once

#include <cstdint>

namespace penstock {

/// Steps over white space, never beyond `end`.
inline const char* skip_space(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

/// What stepping over texts has met.
struct Met {
  std::uint64_t high_bits = 0;  ///< not 0: a byte outside ASCII
  bool escape = false;
};

/// Steps over a text whose opening quote is just before `p`; null when it is
/// no JSON text. UTF-8 is left to the caller, who is told by `met`. Looks at
/// up to 8 bytes behind `end`.
const char* skip_text(const char* p, const char* end, Met& met);

/// Steps over any value at nesting level `depth`, checking its grammar; null
/// when it is no JSON or nested too deeply. Looks at up to 64 bytes behind.
const char* skip_value(const char* p, const char* end, int depth, Met& met);

}  // namespace penstock
