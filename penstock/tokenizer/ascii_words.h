#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/tokenizer/family.h"
#include "penstock/tokenizer/unicode.h"

namespace penstock::scanner {

using unicode::Text;

/// Writes where words end, from `at` on, as long as they are within blocks of
/// ASCII of which every boundary is certain; returns how many, 0 for none.
/// Needs room for 64. `padded`: 64 bytes behind the text may be read.
using AsciiWords = std::size_t(const Text& text, bool padded, std::size_t at,
                               std::span<std::uint32_t> ends);

/// That of a family on this processor; null if none exists.
AsciiWords* ascii_words(Family family);
/// Those of these instructions, where the processor has them.
AsciiWords* ascii_words_avx2(Family family);
AsciiWords* ascii_words_avx512(Family family);

}  // namespace penstock::scanner
