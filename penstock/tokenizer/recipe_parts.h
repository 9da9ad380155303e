#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "penstock/tokenizer/file_value.h"
#include "penstock/tokenizer/recipe.h"

namespace penstock {

// Each reads one part of a tokenizer.json, and throws for what it does not
// know.

void read_normalizer(const FileValue& part, Recipe& recipe);
void read_pre_tokenizer(const FileValue& part, Recipe& recipe);
/// Needs nothing else.
void read_post_processor(const FileValue& part, Recipe& recipe);
/// Needs the model.
void read_decoder(const FileValue& part, Recipe& recipe);
/// Vocabulary, merges or scores.
void read_model(const FileValue& part, const FileValue& pre_tokenizer,
                Recipe& recipe);
/// Needs the vocabulary, and the part "pre_tokenizer" beside it.
void read_bpe(const FileValue& part, const FileValue& pre_tokenizer,
              Recipe& recipe);
/// Writes a token at its id; `written` grows as needed.
void place_token(const std::string& token, std::uint32_t id, Recipe& recipe);
/// {"token": id, ...}
void read_vocabulary(const FileValue& part, Recipe& recipe);
/// The ids of names like <0x0A>, kNone if none exists; false where one is
/// missing.
bool fallback_ids(const TokenIds& ids, std::array<std::uint32_t, 256>& out);
/// Needs the vocabulary and the normaliser.
void read_added_tokens(const FileValue& part, Recipe& recipe);

}  // namespace penstock
