#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/tokenizer/tokenizer.h"
#include "penstock/transforms/tokens/token_notes.h"
#include "penstock/transforms/tokens/token_options.h"

namespace penstock {

/// Token ids of rows of which a part is what the model is to write: chats, or a
/// prompt and what completes it. One per thread.
class TokenTurns {
 public:
  /// `tokens` has a tokenizer and is masked.
  explicit TokenTurns(const Tokens& tokens);

  /// True for columns that hold such texts.
  static bool reads(const ColumnType& type);

  /// What is wrong with the row, whose columns are valid but for the tools;
  /// empty: nothing, and ids() holds its tokens, targets() whether each is one.
  /// `more`: the completions, or of chats the tools, which may be missing.
  /// Fills in what `note` says of the text.
  std::string read(const Column& column, const Column* more, std::int64_t row,
                   DocumentNote& note);
  const std::vector<std::uint32_t>& ids() const { return ids_; }
  const std::vector<bool>& targets() const { return targets_; }

 private:
  std::string read_chat(std::string_view json, std::string_view tools);
  void tokenize();

  const bool special_;
  const std::int64_t eos_;  // -1: none is added
  const std::shared_ptr<const ChatTemplate> template_;
  Encoder encoder_;
  ChatTemplate::Chat chat_;
  std::string prompt_, answer_;  // of JSON
  std::vector<std::uint32_t> ids_;
  std::vector<bool> targets_;
};

}  // namespace penstock
