#include "penstock/sources/key_parts.h"

#include <charconv>

namespace penstock {
namespace {

constexpr char kBetween = '\t', kEscape = '\n';

char of_nine(char digit) { return static_cast<char>('0' + '9' - digit); }

}  // namespace

void KeyOfParts::begin_part() {
  if (begun_) key_ += kBetween;
  begun_ = true;
}

// Why bytes then sort as numbers do: '-' is below 'A', so negative numbers come
// first; the letter compares the number of digits before any digit; and the
// complements of the letter and of the digits reverse the order of amounts. The
// smallest int64 has no positive counterpart, hence unsigned arithmetic.
void KeyOfParts::add(std::int64_t integer) {
  begin_part();
  char digits[24];
  const bool negative = integer < 0;
  const std::uint64_t amount =
      negative ? std::uint64_t{0} - static_cast<std::uint64_t>(integer)
               : static_cast<std::uint64_t>(integer);
  const char* end = std::to_chars(digits, digits + sizeof(digits), amount).ptr;
  const auto more = static_cast<int>(end - digits) - 1;
  if (!negative) {
    key_ += static_cast<char>('A' + more);
    key_.append(digits, static_cast<std::size_t>(end - digits));
    return;
  }
  key_ += '-';
  key_ += static_cast<char>('Z' - more);
  for (const char* digit = digits; digit != end; ++digit)
    key_ += of_nine(*digit);
}

// A tab (9) is below the escape (10), and both are below every byte that is
// written unchanged. So a text sorts before all texts that continue it, and an
// escaped byte sorts by its value.
void KeyOfParts::add(std::string_view text) {
  begin_part();
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > static_cast<unsigned char>(kEscape)) {
      key_ += c;
      continue;
    }
    key_ += kEscape;
    key_ += static_cast<char>('A' + byte);
  }
}

std::string_view KeyParts::next() {
  const std::size_t end = rest_.find(kBetween);
  const std::string_view part = rest_.substr(0, end);
  rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
  return part;
}

std::int64_t KeyParts::integer() {
  std::string_view part = next();
  const bool negative = part.starts_with('-');
  std::string digits(part.substr(negative ? 2 : 1));
  if (negative)
    for (char& digit : digits) digit = of_nine(digit);
  std::uint64_t amount = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), amount);
  return static_cast<std::int64_t>(negative ? std::uint64_t{0} - amount
                                            : amount);
}

std::string KeyParts::text() {
  std::string text;
  const std::string_view part = next();
  for (std::size_t at = 0; at < part.size(); ++at)
    text += part[at] == kEscape && at + 1 < part.size()
                ? static_cast<char>(part[++at] - 'A')
                : part[at];
  return text;
}

}  // namespace penstock
