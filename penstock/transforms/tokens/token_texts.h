#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/tokenizer/tokenizer.h"
#include "penstock/transforms/tokens/token_notes.h"
#include "penstock/transforms/tokens/token_options.h"

namespace penstock {

/// The text of a row, which is valid.
std::string_view text_in(const Column& column, std::int64_t row);

/// The same of JSON, where a text stands in quotation marks: `plain` then holds
/// it. Null: what stands there is no text.
std::optional<std::string_view> document_in(const Column& column,
                                            std::int64_t row,
                                            std::string& plain);

/// Code points, where it is UTF-8.
std::int64_t characters_in(std::string_view text);

/// Token ids of rows of text. One per thread: it remembers words.
class TokenTexts {
 public:
  /// `tokens` has a tokenizer.
  explicit TokenTexts(const Tokens& tokens);

  /// True for columns that hold text, or bytes that may be.
  static bool reads(const ColumnType& type);

  /// What is wrong with the row, which is valid; empty: nothing, and ids()
  /// holds its tokens. Fills in what `note` says of the text.
  std::string read(const Column& column, std::int64_t row, DocumentNote& note);
  const std::vector<std::uint32_t>& ids() const { return ids_; }

 private:
  const bool special_, strict_;
  const std::int64_t eos_;  // -1: none is added
  Encoder encoder_;
  std::string plain_;  // of JSON
  std::vector<std::uint32_t> ids_;
};

}  // namespace penstock
