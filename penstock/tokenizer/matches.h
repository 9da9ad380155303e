#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/family.h"
#include "penstock/tokenizer/file_value.h"

namespace penstock {

/// What a step looks for in a text. Immutable.
class Matching {
 public:
  virtual ~Matching() = default;
  /// Appends what it finds, from the left to the right, apart from each other
  /// and none of it empty.
  virtual void find(std::string_view text,
                    std::vector<ByteRange>& out) const = 0;
};

/// Appends the words into which a family's pattern cuts a part of a text.
void find_words(Family family, std::string_view text, ByteRange part,
                std::vector<ByteRange>& out);

/// {"String": ...} or {"Regex": ...}. Throws Error(request), see
/// Tokenizer::parse.
std::unique_ptr<Matching> read_matching(const FileValue& pattern);

}  // namespace penstock
