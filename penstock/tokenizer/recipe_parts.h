#pragma once

#include "penstock/tokenizer/file_value.h"
#include "penstock/tokenizer/recipe.h"

namespace penstock {

// Each reads one part of a tokenizer.json, and throws for what it does not
// know.

void read_normalizer(const FileValue& part, Tokenizer::Inside& recipe);
void read_pre_tokenizer(const FileValue& part, Tokenizer::Inside& recipe);
/// Needs nothing else.
void read_post_processor(const FileValue& part, Tokenizer::Inside& recipe);
/// Needs what the template adds.
void read_truncation(const FileValue& part, Tokenizer::Inside& recipe);
/// Needs the model.
void read_decoder(const FileValue& part, Tokenizer::Inside& recipe);
/// Vocabulary, merges or scores.
void read_model(const FileValue& part, const FileValue& pre_tokenizer,
                Tokenizer::Inside& recipe);
/// Needs the vocabulary, and the part "pre_tokenizer" beside it.
void read_bpe(const FileValue& part, const FileValue& pre_tokenizer,
              Tokenizer::Inside& recipe);
/// Writes a token at its id; `written` grows as needed.
void place_token(const std::string& token, std::uint32_t id,
                 Tokenizer::Inside& recipe);
/// {"token": id, ...}
void read_vocabulary(const FileValue& part, Tokenizer::Inside& recipe);
/// Needs the vocabulary and the normaliser.
void read_added_tokens(const FileValue& part, Tokenizer::Inside& recipe);

}  // namespace penstock
