#pragma once

#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/tokens/token_options.h"

namespace penstock {

/// The kind `tokens`: texts that a tokenizer makes token ids of, or lists of
/// such, of which a batch has rows for a language model, all int64 [rows,
/// max_length]: `input_ids`; `labels`, the same but for -100 at the first token
/// of a document and at padding; `position_ids`, from 0 on in each document;
/// `document_ids`, the numbers of the samples, -1 at padding; and int32
/// `cu_seqlens`, where documents begin and end in the rows one after the other,
/// padding being a document of its own. With Pack::none a row is a document,
/// cut off at `max_length` and padded to the longest of its batch, and
/// `attention_mask` takes the place of `document_ids` and `cu_seqlens`. NAME_
/// stands before these names unless the field is called `tokens` or is the only
/// one. Loads the tokenizer, where there is one, and throws what that throws.
std::shared_ptr<const FieldKind> make_tokens(std::string name, Tokens tokens);

}  // namespace penstock
