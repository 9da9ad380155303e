#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock {

/// RFC 4648, section 4: digits, filled up with '=' to a multiple of 4.
std::string base64_of(std::string_view bytes);
/// The bytes; nullopt for a text that is not base64. The '=' at its end may be
/// missing.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace penstock
