#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/hash.h"

namespace penstock {

/// Texts, each with a number, in the order in which they came: one table over
/// one piece of memory.
class TokenIds {
 public:
  struct Token {
    std::string_view text;
    std::uint32_t id;
  };

  std::size_t size() const { return count_; }
  /// Makes room for so many.
  void reserve(std::size_t tokens);
  std::optional<std::uint32_t> find(std::string_view text) const {
    return find(text, hash_of(text));
  }
  /// A text that is there keeps its id.
  void add(std::string_view text, std::uint32_t id) { put(text, id); }
  /// A text that is there gets this one.
  void set(std::string_view text, std::uint32_t id);
  /// Calls visit(token) for each.
  template <class Visit>
  void each(const Visit& visit) const {
    for (std::size_t at = 0; at < memory_.size();) {
      const Token token = at_place(at);
      visit(token);
      at += bytes_of(token.text);
    }
  }

  // Who looks for many asks the memory first: for the slot of each one, then
  // for what the slot says.
  static std::uint64_t hash_of(std::string_view text) {
    return hash64(text, kSecret);
  }
  void fetch_slot(std::uint64_t hash) const {
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  void fetch_token(std::uint64_t hash) const {
    const std::uint64_t slot = slots_[hash & (slots_.size() - 1)];
    if (slot != 0) __builtin_prefetch(&memory_[(slot & UINT32_MAX) - 1]);
  }
  std::optional<std::uint32_t> find(std::string_view text,
                                    std::uint64_t hash) const;

 private:
  /// Of this process: nobody can choose texts that meet in the table.
  static const std::uint64_t kSecret;
  /// What a text lies behind.
  struct Head {
    std::uint32_t id, size;
  };
  static std::size_t bytes_of(std::string_view text) {
    return sizeof(Head) + text.size();
  }
  Token at_place(std::size_t place) const {
    Head head;
    std::memcpy(&head, &memory_[place], sizeof head);
    return {{memory_.data() + place + sizeof head, head.size}, head.id};
  }
  /// Where `text` is in slots_, or the free place for it.
  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  /// Where in memory_ it is; it is added where it is not there.
  std::size_t put(std::string_view text, std::uint32_t id);

  // The upper half of a hash, and where in memory_ its token is, from 1 on.
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(64);
  std::size_t count_ = 0;
  std::string memory_;
};

}  // namespace penstock
