#pragma once

#include <memory>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/file_value.h"

namespace penstock {

/// A step that changes a text before it is cut into words. Immutable.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Aligned& text) const = 0;
};

using Normalizers = std::vector<std::shared_ptr<const Normalizer>>;

/// The steps of the part "normalizer" of a tokenizer.json, those of sequences
/// one after the other. Throws Error(request), see Tokenizer::parse.
Normalizers read_normalizers(const FileValue& part);

/// The one of type "Precompiled": replacements in a trie, as SentencePiece
/// keeps them.
std::shared_ptr<const Normalizer> read_precompiled(const FileValue& part);
/// The one of type "BertNormalizer".
std::shared_ptr<const Normalizer> read_bert_normalizer(const FileValue& part);

}  // namespace penstock
