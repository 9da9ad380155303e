#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/tokenizer/recipe.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {

/// Turns places in bytes into places in characters of a document.
void count_characters(std::string_view document,
                      std::span<TokenOffsets> offsets);
/// Takes the white space of tokens out of their offsets, as the post-processor
/// ByteLevel does.
void trim_offsets(const Recipe& recipe, std::span<const std::uint32_t> ids,
                  std::span<TokenOffsets> offsets);

}  // namespace penstock
