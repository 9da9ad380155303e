#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/base/bytes.h"

namespace penstock {

/// The tokens of words that were seen: words of up to 15 bytes lie in slots of
/// half a cache line, longer ones beside. Bounded: full, it begins anew. For
/// one thread.
class WordCache {
 public:
  static constexpr std::size_t kShort = 15;

  /// A word of at most 15 bytes, padded with zeros, its length in the last.
  struct Key {
    std::uint64_t low, high;

    friend bool operator==(Key a, Key b) {
      return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
    }
    std::uint64_t hash() const {
      std::uint64_t mixed =
          (low ^ (high * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93;
      return mixed ^ mixed >> 32;
    }
  };
  /// Up to three tokens in place, more in `ids`, from tokens[0] on.
  struct Slot {
    Key key;
    std::uint32_t count;
    std::uint32_t tokens[3];
  };

  WordCache();
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;

  /// Reads 16 bytes from `word`.
  static Key key_of(const char* word, std::size_t size) {
    Key key;
    std::memcpy(&key, word, sizeof key);
    // Shifts by 64 are none in C++; a word of 8 to 15 bytes keeps its low half.
    std::uint64_t kept = ~std::uint64_t{0} >> ((8 - (size & 7)) * 8 & 63);
    if (size < 8) {
      key.low &= size == 0 ? 0 : kept;
      key.high = 0;
    } else {
      key.high &= size == 8 ? 0 : kept;
    }
    key.high |= std::uint64_t{size} << 56;
    return key;
  }
  /// The same, where no byte behind the word may be read.
  static Key key_of_copy(std::string_view word) {
    char padded[16] = {};
    std::memcpy(padded, word.data(), word.size());
    return key_of(padded, word.size());
  }
  void fetch(std::uint64_t hash) const {
    __builtin_prefetch(&slots_[hash & mask_]);
  }
  /// The slot of a word, or null.
  const Slot* find(Key key, std::uint64_t hash) const {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return &slot;
      if (slot.key.high == 0) return nullptr;
    }
  }
  const std::uint32_t* ids(const Slot& slot) const {
    return slot.count <= 3 ? slot.tokens : &ids_[slot.tokens[0]];
  }
  void insert(Key key, std::uint64_t hash, std::span<const std::uint32_t> ids);

  /// The tokens of a longer word; no data when it is not known.
  std::span<const std::uint32_t> find_long(std::string_view word,
                                           std::uint64_t hash) const;
  void insert_long(std::string_view word, std::uint64_t hash,
                   std::span<const std::uint32_t> ids);
  static std::uint64_t hash_long(std::string_view word);

 private:
  struct LongSlot {
    std::uint64_t hash;  // 0: free
    std::uint32_t text, size, ids, count;
  };
  void make_slots(std::size_t size);
  void grow();
  void grow_long();

  Bytes memory_;  // of slots_
  Slot* slots_ = nullptr;
  std::size_t mask_ = 0, used_ = 0;
  std::vector<std::uint32_t> ids_;
  std::vector<LongSlot> long_slots_;
  std::size_t long_used_ = 0;
  std::vector<char> texts_;
  std::vector<std::uint32_t> long_ids_;
};

}  // namespace penstock
