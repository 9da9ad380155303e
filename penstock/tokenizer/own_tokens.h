#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/tokenizer/merges.h"

namespace penstock {

/// Which tokens are what merges make of their own bytes, by id: a word that is
/// one of these need not be merged. `merges` are in the order of ids; `bytes`
/// are the ids of single bytes, Merges::kNone among them.
std::vector<bool> own_tokens(const Merges& merges,
                             std::span<const std::uint32_t> bytes,
                             std::size_t vocabulary);

}  // namespace penstock
