#pragma once

#include <string>
#include <string_view>

namespace penstock {

/// The bytes that a token of byte-level characters stands for (GPT-2's table:
/// printable bytes as themselves, the others from U+0100 on), into `bytes`.
/// False when one of its characters is not one of these 256.
bool bytes_of_token(std::string_view token, std::string& bytes);
/// The character that stands for a byte, as UTF-8.
std::string character_of_byte(unsigned char byte);

}  // namespace penstock
