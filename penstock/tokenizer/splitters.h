#pragma once

#include <memory>
#include <vector>

#include "penstock/tokenizer/aligned.h"
#include "penstock/tokenizer/file_value.h"

namespace penstock {

/// A text and the parts of it that are words, so far. None is empty.
struct Pieces {
  Aligned text;
  std::vector<ByteRange> parts;
};

/// A step that cuts a text into words. Immutable.
class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual void apply(Pieces& pieces) const = 0;
  /// It must know where words began in the document.
  virtual bool asks_where() const { return false; }
};

using Splitters = std::vector<std::shared_ptr<const Splitter>>;

/// The steps of the part "pre_tokenizer" of a tokenizer.json, those of
/// sequences one after the other. Of a ByteLevel at the end, `bytes_last` says
/// that words stay bytes: the model knows them. Throws Error(request), see
/// Tokenizer::parse.
Splitters read_splitters(const FileValue& part, bool bytes_last);
/// True where the last step is ByteLevel.
bool ends_in_bytes(const FileValue& part);

}  // namespace penstock
