#pragma once

#include <string>
#include <string_view>

namespace penstock::text {

/// Whether a token that begins like a number is one by RFC 8259: "01", "1."
/// and "1e" are not.
bool is_json_number(std::string_view token);

/// The same of a token that is digits with at most one sign before and one
/// point among them.
inline bool is_json_decimal(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  const bool zero = token.size() > 1 && token[0] == '0' && token[1] != '.';
  return !zero && !token.starts_with('.') && !token.ends_with('.');
}

/// Checks values that are taken as written. simdjson finds where such
/// a value ends, but does not look inside it. One thread's.
class JsonSyntax {
 public:
  /// Whether a text is one JSON value by RFC 8259. Its bytes must be UTF-8
  /// without control characters in its strings, as simdjson has found them.
  bool is_value(std::string_view text);

 private:
  std::string open_;  // a bracket for each list and object around
};

}  // namespace penstock::text
