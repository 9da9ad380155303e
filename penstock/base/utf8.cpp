#include "penstock/base/utf8.h"

#include "penstock/base/utf8_character.h"

namespace penstock {
namespace {

constexpr std::size_t kMostFollowing = 3;  // bytes behind the first of one
constexpr std::size_t kShownAsDigits = 20;

bool is_following(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::size_t character_at(std::string_view text) {
  auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  auto follows = [&](std::size_t i) {
    return i < text.size() && is_following(text[i]);
  };
  unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !follows(1)) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) {
    bool overlong = first == 0xe0 && second < 0xa0;
    bool surrogate = first == 0xed && second > 0x9f;
    return overlong || surrogate || !follows(2) ? 0 : 3;
  }
  bool overlong = first == 0xf0 && second < 0x90;
  bool beyond = first == 0xf4 && second > 0x8f;
  return overlong || beyond || !follows(2) || !follows(3) ? 0 : 4;
}

namespace {

std::string hexadecimal(std::string_view bytes) {
  std::string text = "x'";
  for (char c : bytes.substr(0, kShownAsDigits)) {
    auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text + (bytes.size() > kShownAsDigits ? "...'" : "'");
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t size = character_at(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && most - end < kMostFollowing && is_following(text[end]))
    --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string shown_text(std::string_view text) {
  if (is_utf8(text)) return "text '" + beginning(text) + "'";
  return "text " + hexadecimal(text) + ", which is not UTF-8";
}

}  // namespace penstock
