#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

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
      return ((low ^ (high * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93) >> 32;
    }
  };
  /// Up to three tokens in place, more in `ids`, from tokens[0] on.
  struct Slot {
    Key key;
    std::uint32_t count;
    std::uint32_t tokens[3];
  };

  /// With room for so many short words before it grows.
  explicit WordCache(std::size_t words = 0);
  WordCache(WordCache&&) noexcept = default;
  WordCache& operator=(WordCache&&) noexcept = default;

  /// Reads 16 bytes from `word`.
  static Key key_of(const char* word, std::size_t size) {
    Key key;
    std::memcpy(&key, word, sizeof key);
    key.low &= kKept[size + 8];
    key.high &= kKept[size];
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
    __builtin_prefetch(slots_ + line_of(hash));
  }
  /// The slot of a word, or null.
  const Slot* find(Key key, std::uint64_t hash) const {
    for (std::size_t at = line_of(hash);; at = (at + 2) & mask_) {
      const Slot* line = slots_ + at;
      if (line[0].key == key) return line;
      if (line[1].key == key) return line + 1;
      if (line[1].key.high == 0) return nullptr;
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
  /// Before find_long(): first where the word is looked for, later what is
  /// found there.
  void fetch_long(std::uint64_t hash) const {
    __builtin_prefetch(&long_slots_[place_of_long(hash)]);
  }
  void fetch_found(std::uint64_t hash) const {
    const LongSlot& slot = long_slots_[place_of_long(hash)];
    __builtin_prefetch(texts_.data() + slot.text);
    __builtin_prefetch(long_ids_.data() + slot.ids);
  }

 private:
  struct LongSlot {
    std::uint64_t hash;  // 0: free
    std::uint32_t text, size, ids, count;
  };
  /// Of the eight bytes of a half, those that a word has: of the second half at
  /// its size, of the first 8 further on.
  static constexpr auto kKept = [] {
    std::array<std::uint64_t, 24> kept{};
    for (std::size_t i = 9; i < kept.size(); ++i)
      kept[i] = i < 16 ? kept[i - 1] << 8 | 0xFF : ~std::uint64_t{0};
    return kept;
  }();
  /// Slots lie in lines of two, of which the first is taken first.
  std::size_t line_of(std::uint64_t hash) const {
    return hash & mask_ & ~std::size_t{1};
  }
  /// Puts a key that is not there; its slot.
  Slot& take(Key key, std::uint64_t hash);
  std::size_t place_of_long(std::uint64_t hash) const {
    return hash >> 20 & (long_slots_.size() - 1);
  }
  void make_slots(std::size_t count);
  void grow();
  void grow_long();

  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Unmap> memory_;  // of slots_
  Slot* slots_ = nullptr;
  std::size_t mask_ = 0, used_ = 0;
  std::vector<std::uint32_t> ids_;
  std::vector<LongSlot> long_slots_;
  std::size_t long_used_ = 0;
  std::vector<char> texts_;
  std::vector<std::uint32_t> long_ids_;
};

}  // namespace penstock
