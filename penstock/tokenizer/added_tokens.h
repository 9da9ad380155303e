#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penstock {

/// A token that is found in the text before anything else.
struct AddedToken {
  std::uint32_t id = 0;
  std::string content = {};
  bool special = false;
  bool normalized = false;   ///< found in the normalised text
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and behind it
  bool single_word = false;  ///< not within a word
};

/// Finds tokens in a text: of several at one place the longest. Immutable after
/// its making.
class TokenSearch {
 public:
  /// A part of a text: a token, or (`id` kNone) what lies between.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Part {
    std::size_t begin, end;
    std::uint32_t id;
  };

  /// `as_searched` is what a token looks like in the text that is searched.
  void add(const AddedToken& token, const std::string& as_searched);
  bool empty() const { return tokens_.empty(); }
  /// Appends the parts of a text. They may overlap only as those of
  /// `tokenizers` do.
  void cut(std::string_view text, std::vector<Part>& parts) const;

 private:
  struct Found {
    std::size_t size = 0;
    std::uint32_t token = 0;
  };
  Found at(std::string_view text) const;
  std::size_t candidate(std::string_view text, std::size_t from) const;

  std::vector<AddedToken> tokens_;
  bool firsts_[256] = {};
  std::string only_first_;  // when all begin alike
  std::unordered_map<std::uint64_t, std::uint32_t> steps_;  // node << 8 | byte
  std::vector<std::uint32_t> ends_ = {kNone};  // of each node: a token
};

}  // namespace penstock
