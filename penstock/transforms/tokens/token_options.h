#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace penstock {

class ChatTemplate;
class Tokenizer;

/// How a column of tokens goes into batches.
struct Tokens {
  enum class Pack : std::uint8_t { best_fit, wrapped, stream, none };
  /// Documents in a window of a stream, unless `pack_window` says another.
  static constexpr std::int64_t kStreamWindow = 8192;

  std::string column;
  /// The path of a tokenizer.json; empty: the column holds tokens already.
  std::string tokenizer;
  bool chat = false;          ///< the column holds messages
  std::string chat_template;  ///< its file; empty: the one of the tokenizer
  std::string tools;  ///< the column of what chats may call; may be empty
  /// The column of what follows `column`, which is no target then.
  std::string completion;
  /// Of token ids: the column that says which are targets; may be empty.
  std::string labels;
  bool special = false;   ///< with what the tokenizer's template adds
  bool eos = false;       ///< a token ends each document
  std::string eos_token;  ///< as written; empty: what its files name
  /// The id of that token, once the tokenizer is loaded.
  std::optional<std::uint32_t> end;
  bool strict_utf8 = false;        ///< text that is not UTF-8 makes its row bad
  std::int32_t max_length = 2048;  ///< of a row of a batch
  Pack pack = Pack::best_fit;
  std::int64_t vocab_size = 0;  ///< of the model; 0: not known
  /// What fills rows up; missing: what the tokenizer's files say, else 0.
  std::optional<std::int32_t> pad_id;
  bool repack = false;
  std::int64_t pack_window = 0;
  std::shared_ptr<const Tokenizer> loaded = {};          ///< of `tokenizer`
  std::shared_ptr<const ChatTemplate> rendered_by = {};  ///< of chats

  /// The other column that a row of turns is read from; empty: none.
  const std::string& second() const {
    return chat ? tools : labels.empty() ? completion : labels;
  }
  /// Some tokens are no targets of the loss.
  bool masked() const { return chat || !completion.empty() || !labels.empty(); }
};

}  // namespace penstock
