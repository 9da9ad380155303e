#include "penstock/base/secret.h"

#include <algorithm>

namespace penstock {

std::string without_password(const std::string& uri) {
  std::string shown = uri;
  std::size_t scheme = shown.find("://");
  if (scheme != std::string::npos) {
    std::size_t start = scheme + 3;
    std::size_t end = shown.find_first_of("/?", start);
    std::size_t at = shown.rfind('@', end);
    std::size_t colon = shown.find(':', start);
    if (at != std::string::npos && at >= start && colon < at)
      shown.replace(colon + 1, at - colon - 1, "***");
  }
  for (std::size_t at = 0;
       (at = shown.find("password", at)) != std::string::npos;) {
    at += 8;
    std::size_t value = shown.find_first_not_of(' ', at);
    if (value == std::string::npos || shown[value] != '=') continue;
    value = shown.find_first_not_of(' ', value + 1);
    if (value == std::string::npos) break;
    bool quoted = shown[value] == '\'';
    std::size_t end = value + 1;
    while (
        end < shown.size() &&
        (quoted ? shown[end] != '\'' : shown[end] != ' ' && shown[end] != '&'))
      end += quoted && shown[end] == '\\' ? 2 : 1;
    if (quoted && end < shown.size()) ++end;
    shown.replace(value, std::min(end, shown.size()) - value, "***");
    at = value + 3;
  }
  return shown;
}

}  // namespace penstock
