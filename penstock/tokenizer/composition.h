#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {
struct Aligned;
}

namespace penstock::unicode {

/// The normal forms of Unicode.
enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Appends the composed form (NFC) of a text that is UTF-8, by the data of
/// Unicode 9.0, which is what `tokenizers` knows: later marks keep their places
/// and nothing later is composed.
void append_composed(std::string_view text, std::string& out);
/// The same of any form, in place.
void normalise(Aligned& text, Form form);

// What tools/make_unicode_tables.py has written. Marks: code point * 256 +
// combining class. Parts: character, first part, second part or 0. Composed:
// the characters whose parts become them again.
extern const std::uint32_t kCombining[];
extern const std::size_t kCombiningSize;
extern const std::uint32_t kParts[];
extern const std::size_t kPartsSize;
extern const std::uint32_t kComposed[];
extern const std::size_t kComposedSize;
// Compatible: the code point as difference * 32 + count, then so many parts as
// differences, the first from that of the character before.
extern const std::uint32_t kCompatible[];
extern const std::size_t kCompatibleSize;

}  // namespace penstock::unicode
