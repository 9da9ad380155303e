#include "penstock/sources/text/json_syntax.h"

#include <algorithm>
#include <cstring>

namespace penstock::text {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

const char* skip_digits(const char* at, const char* end) {
  return std::find_if_not(at, end, is_digit);
}

/// What follows a string whose first byte after the quotation mark is at `at`;
/// null: it has no end, or an escape that does not exist.
const char* end_of_string(const char* at, const char* end) {
  for (;;) {
    while (at < end && *at != '"' && *at != '\\') ++at;
    if (at == end) return nullptr;
    if (*at++ == '"') return at;
    if (at == end) return nullptr;
    if (*at == 'u') {
      if (end - at < 5 || !std::all_of(at + 1, at + 5, is_hex)) return nullptr;
      at += 5;
    } else if (std::strchr("\"\\/bfnrt", *at) != nullptr && *at != '\0') {
      ++at;
    } else {
      return nullptr;
    }
  }
}

/// What follows a number, a word or a string; null: none of them begins here.
const char* end_of_scalar(const char* at, const char* end) {
  if (*at == '"') return end_of_string(at + 1, end);
  const char* stop = std::find_if(at, end, [](char c) {
    return is_space(c) || c == ',' || c == ']' || c == '}' || c == ':';
  });
  const std::string_view token(at, static_cast<std::size_t>(stop - at));
  const bool good = token == "null" || token == "true" || token == "false" ||
                    is_json_number(token);
  return good ? stop : nullptr;
}

/// What follows a key and its colon; null: none begins here.
const char* end_of_key(const char* at, const char* end) {
  if (at == end || *at != '"') return nullptr;
  at = end_of_string(at + 1, end);
  if (at == nullptr) return nullptr;
  at = std::find_if_not(at, end, is_space);
  return at < end && *at == ':' ? at + 1 : nullptr;
}

}  // namespace

bool is_json_number(std::string_view token) {
  const char* at = token.data();
  const char* end = at + token.size();
  if (at < end && *at == '-') ++at;
  const char* begin = at;
  at = skip_digits(at, end);
  if (at == begin || (*begin == '0' && at - begin > 1)) return false;
  if (at < end && *at == '.') {
    begin = ++at;
    at = skip_digits(at, end);
    if (at == begin) return false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at < end && (*at == '+' || *at == '-')) ++at;
    begin = at;
    at = skip_digits(at, end);
    if (at == begin) return false;
  }
  return at == end;
}

// RFC 8259, sections 2 to 7, as a machine with a stack of open brackets instead
// of recursion: nesting is bounded by memory for one byte a level. Each turn of
// the outer loop begins where a value must begin.
bool JsonSyntax::is_value(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  auto skip_space = [&] { at = std::find_if_not(at, end, is_space); };
  open_.clear();
  for (;;) {
    skip_space();
    if (at == end) return false;
    if (*at == '[' || *at == '{') {
      open_ += *at++;
      skip_space();
      if (at == end) return false;
      if (*at != ']' && *at != '}') {
        if (open_.back() == '[') continue;
        if ((at = end_of_key(at, end)) == nullptr) return false;
        continue;
      }
    } else if ((at = end_of_scalar(at, end)) == nullptr) {
      return false;
    }
    // A value has ended here, or a list or object that is empty.
    for (;; ++at) {
      skip_space();
      if (open_.empty()) return at == end;
      if (at == end) return false;
      if (*at != (open_.back() == '[' ? ']' : '}')) break;
      open_.pop_back();
    }
    if (*at++ != ',') return false;
    skip_space();
    if (open_.back() == '{' && (at = end_of_key(at, end)) == nullptr)
      return false;
  }
}

}  // namespace penstock::text
