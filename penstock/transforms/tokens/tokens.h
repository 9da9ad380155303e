#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// How a column of tokens goes into batches.
struct Tokens {
  enum class Pack : std::uint8_t { best_fit, wrapped, none };

  std::string column;
  std::int32_t max_length = 2048;  ///< of a row of a batch
  Pack pack = Pack::best_fit;
  std::int64_t vocab_size = 0;  ///< of the model; 0: not known
  std::int32_t pad_id = 0;      ///< what fills rows up
  bool repack = false;
  std::int64_t pack_window = 0;
};

/// The kind `tokens`: lists of token ids, of which a batch has rows for a
/// language model, all int64 [rows, max_length]: `input_ids`; `labels`, the
/// same but for -100 at the first token of a document and at padding;
/// `position_ids`, from 0 on in each document; `document_ids`, the numbers of
/// the samples, -1 at padding; and int32 `cu_seqlens`, where documents begin
/// and end in the rows one after the other, padding being a document of its
/// own. With Pack::none a row is a document, cut off at `max_length` and padded
/// to the longest of its batch, and `attention_mask` takes the place of
/// `document_ids` and `cu_seqlens`. NAME_ stands before these names unless the
/// field is called `tokens` or is the only one. Loads the tokenizer, where
/// there is one, and throws what that throws.
std::shared_ptr<const FieldKind> make_tokens(std::string name, Tokens tokens);

}  // namespace penstock
