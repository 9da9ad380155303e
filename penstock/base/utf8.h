#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

/// The byte order mark, by which some programs say that a text is UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Whether these bytes are UTF-8 (RFC 3629): no overlong forms, no surrogates,
/// nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

/// The first bytes of a text, at most `most` of them and not cut within a
/// character, then "..." if there are more.
std::string beginning(std::string_view text, std::size_t most = 40);

/// The beginning of a text as in a message: "text 'abc'" or "text x'ff61',
/// which is not UTF-8".
std::string shown_text(std::string_view text);

}  // namespace penstock
