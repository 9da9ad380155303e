#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::unicode {

/// Appends the composed form (NFC) of a text that is UTF-8, by the data of
/// Unicode 9.0, which is what `tokenizers` knows: later marks keep their places
/// and nothing later is composed.
void append_composed(std::string_view text, std::string& out);

// What tools/make_unicode_tables.py has written. Marks: code point * 256 +
// combining class. Parts: character, first part, second part or 0. Composed:
// the characters whose parts become them again.
extern const std::uint32_t kCombining[];
extern const std::size_t kCombiningSize;
extern const std::uint32_t kParts[];
extern const std::size_t kPartsSize;
extern const std::uint32_t kComposed[];
extern const std::size_t kComposedSize;

}  // namespace penstock::unicode
