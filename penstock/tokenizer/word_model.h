#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace penstock {

/// The tokens of a word, and of how many of its bytes each was made.
struct WordTokens {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> sizes;  ///< a model may leave them out, unless
  bool measured = true;              ///< they are wanted

  void clear() {
    ids.clear();
    sizes.clear();
  }
  void add(std::uint32_t id, std::size_t size) {
    ids.push_back(id);
    sizes.push_back(static_cast<std::uint32_t>(size));
  }
};

/// Makes tokens of words: what a model of a tokenizer.json is. For one thread.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Writes the tokens of a word that is UTF-8 and not empty. Throws
  /// Error(transform) `tokenizer.unknown` for what the model has no token for.
  virtual void encode(std::string_view word, WordTokens& out) = 0;
  /// Appends the tokens of several words, and of each where they end. A model
  /// that has `known` words is not asked for those here.
  virtual void encode_new(std::span<const std::string_view> words,
                          std::vector<std::uint32_t>& ids,
                          std::vector<std::uint32_t>& ends) {
    WordTokens tokens;
    tokens.measured = false;
    for (std::string_view word : words) {
      encode(word, tokens);
      ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
      ends.push_back(static_cast<std::uint32_t>(ids.size()));
    }
  }
};

/// Makes one for a thread. What it reads lives as long as the tokenizer.
using MakeWordModel = std::function<std::unique_ptr<WordModel>()>;

}  // namespace penstock
