#include "penstock/base/formatted.h"

#include <cstdarg>
#include <cstdio>

#include "penstock/base/error.h"

namespace penstock {

std::string formatted(const char* pattern, ...) {
  char text[256];
  std::va_list values, again;
  va_start(values, pattern);
  va_copy(again, values);
  const int length = std::vsnprintf(text, sizeof(text), pattern, values);
  va_end(values);
  std::string whole(text);
  if (length >= static_cast<int>(sizeof(text))) {
    whole.resize(static_cast<std::size_t>(length));
    std::vsnprintf(whole.data(), whole.size() + 1, pattern, again);
  }
  va_end(again);
  PENSTOCK_ASSERT(length >= 0, "a pattern is well formed");
  return whole;
}

}  // namespace penstock
