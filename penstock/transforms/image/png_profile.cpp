#include "penstock/transforms/image/png_profile.h"

#include <span>

#include "penstock/transforms/image/image_part.h"

namespace penstock {
namespace {

/// What follows the first zero; nothing where there is no zero.
std::string_view behind_zero(std::string_view text) {
  const std::size_t zero = text.find('\0');
  return zero == text.npos ? std::string_view() : text.substr(zero + 1);
}

/// The text behind the keyword.
/// After the keyword and its zero:
///   tEXt  the text
///   zTXt  a method, 0, and the compressed text
///   iTXt  1 or 0 (compressed or not), a method, a language and its zero, the
///         translated keyword and its zero, the text
std::string text_of_chunk(std::string_view kind, std::string_view chunk) {
  chunk = behind_zero(chunk);
  bool compressed = kind == "zTXt";
  if (kind == "iTXt") {
    compressed = chunk.starts_with('\1');
    if (chunk.size() < 2) return {};
    // The method, a language, and the keyword in that language.
    chunk = behind_zero(behind_zero(chunk.substr(2)));
  } else if (compressed) {
    if (!chunk.starts_with('\0')) return {};
    chunk.remove_prefix(1);
  }
  return compressed ? inflate_text(std::as_bytes(std::span(chunk)))
                    : std::string(chunk);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Bytes in hexadecimal digits, behind three lines: an empty one, the kind of
/// the profile, how many bytes there are.
std::string bytes_of_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    if (c == '\n' || c == ' ' || c == '\r' || c == '\t') continue;
    const int digit = digit_of(c);
    if (digit < 0) return {};
    if (high >= 0) bytes += static_cast<char>(high << 4 | digit);
    high = high >= 0 ? -1 : digit;
  }
  return high < 0 ? bytes : "";
}

}  // namespace

std::string exif_of_text(std::string_view kind,
                         std::span<const std::byte> chunk) {
  constexpr std::string_view kKeyword = {"Raw profile type exif\0", 22};
  constexpr std::string_view kSegment = {"Exif\0\0", 6};  // as JPEG has it
  const std::string_view all(reinterpret_cast<const char*>(chunk.data()),
                             chunk.size());
  if (!all.starts_with(kKeyword)) return {};
  std::string bytes = bytes_of_profile(text_of_chunk(kind, all));
  while (bytes.starts_with(kSegment)) bytes.erase(0, kSegment.size());
  return bytes;
}

}  // namespace penstock
