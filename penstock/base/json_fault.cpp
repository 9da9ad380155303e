#include "penstock/base/json_fault.h"

#include <algorithm>

#include "penstock/base/utf8.h"

// All words before the wrong one are JSON, so that going over them from the
// beginning finds where it starts.
namespace penstock {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kMarks = "{}[],:";

/// How many bytes the character or escape of a text should have.
std::size_t wanted_size(std::string_view from) {
  auto first = static_cast<unsigned char>(from[0]);
  if (first == '\\') return from.substr(1, 1) == "u" ? 6 : 2;
  if (first < 0xc2 || first > 0xf4) return 1;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

/// The place after the closing quote of the text that begins at `at`. When
/// `byte` comes first, `fault` is where the bad character begins; a text that
/// is not closed on its line is bad as a whole.
std::size_t end_of_text(std::string_view json, std::size_t at, std::size_t byte,
                        std::size_t& fault) {
  fault = at++;
  while (at < json.size() && json[at] != '"' && !is_control(json[at])) {
    std::size_t end = at + wanted_size(json.substr(at));
    if (byte < end && byte < json.size()) {
      fault = at;
      return end;
    }
    at = end;
  }
  return at + 1;
}

std::size_t end_of_word(std::string_view json, std::size_t at) {
  if (kMarks.find(json[at]) != kMarks.npos) return at + 1;
  auto ends = [](char c) {
    return c == '"' || kMarks.find(c) != kMarks.npos ||
           kBlanks.find(c) != kBlanks.npos;
  };
  while (at < json.size() && !ends(json[at])) ++at;
  return at;
}

/// Removes leading digits; false if none exist.
bool take_digits(std::string_view& from) {
  std::size_t end = std::min(from.find_first_not_of("0123456789"), from.size());
  from.remove_prefix(end);
  return end > 0;
}

bool is_number(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  if (word.starts_with('0'))
    word.remove_prefix(1);
  else if (!take_digits(word))
    return false;
  if (word.starts_with('.')) {
    word.remove_prefix(1);
    if (!take_digits(word)) return false;
  }
  if (word.starts_with('e') || word.starts_with('E')) {
    word.remove_prefix(1);
    if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
    if (!take_digits(word)) return false;
  }
  return word.empty();
}

bool is_json(std::string_view word) {
  return word == "true" || word == "false" || word == "null" ||
         (word.size() == 1 && kMarks.find(word[0]) != kMarks.npos) ||
         is_number(word);
}

}  // namespace

std::size_t start_of_fault(std::string_view json, std::size_t byte) {
  std::size_t at = json.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (;;) {
    at = json.find_first_not_of(kBlanks, at);
    if (at >= json.size()) return json.size();
    std::size_t fault = at;
    if (json[at] == '"') {
      at = end_of_text(json, at, byte, fault);
    } else {
      at = end_of_word(json, at);
      // The parser may have looked at the byte after such a word.
      if (!is_json(json.substr(fault, at - fault))) return fault;
    }
    if (byte < at) return fault;
  }
}

}  // namespace penstock
