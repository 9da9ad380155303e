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
/// half a cache line, the texts of longer ones beside. Bounded: full, it begins
/// again. For one thread.
class WordCache {
 public:
  static constexpr std::size_t kShort = 15;
  static constexpr std::uint32_t kLong = UINT32_MAX;

  /// A word of at most 15 bytes, padded with zeros, its length in the last; or
  /// a number that longer ones hardly share.
  struct Key {
    std::uint64_t low, high;

    friend bool operator==(Key a, Key b) {
      return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
    }
    bool is_long() const { return high >> 56 > kShort; }
  };
  /// Up to three tokens in place. More, and those of long words, are found by
  /// ids(), and the first is where.
  struct Slot {
    Key key;
    std::uint32_t tokens[4];  ///< the last says how many, or kLong

    std::uint32_t count() const { return tokens[3]; }
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
  static Key key_of_long(std::string_view word);

  /// Slots lie in lines of two, of which the first is taken first.
  struct Lines {
    const Slot* first;
    int shift;  // of a hash: what is left is which line

    const Slot* of(Key key) const {
      const std::uint64_t hash =
          (key.low ^ (key.high * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93;
      return first + 2 * (hash >> shift);
    }
  };
  /// Until slots move.
  Lines lines() const { return {slots_, shift_}; }
  /// Where find() begins to look, which may be asked of the memory before.
  const Slot* line_of(Key key) const { return lines().of(key); }
  /// The slot of a key, or null.
  const Slot* find(Key key, const Slot* line) const {
    while (true) {
      const bool second = line[1].key == key;
      if (static_cast<int>(line[0].key == key) | static_cast<int>(second))
        return line + (second ? 1 : 0);
      if (line[1].key.high == 0) return nullptr;
      line = line + 2 == end_ ? slots_ : line + 2;
    }
  }
  const Slot* find(Key key) const { return find(key, line_of(key)); }
  /// The tokens of a slot of `word`; no data where it is of another long word.
  std::span<const std::uint32_t> ids(const Slot& slot,
                                     std::string_view word) const;

  /// Until so many words more are there, slots stay where they are.
  void reserve(std::size_t words) {
    while (used_ + words > most_ || texts_.size() > kMostText) grow();
  }
  /// A word that is not there. Long ones only where the cache `takes` them.
  const Slot& insert(Key key, std::span<const std::uint32_t> ids);
  const Slot& insert_long(std::string_view word, Key key,
                          std::span<const std::uint32_t> ids);
  static bool takes(std::string_view word) { return word.size() <= 1024; }

 private:
  static constexpr std::size_t kMostText = std::size_t{1} << 25;

  struct LongWord {
    std::size_t text, size, ids, count;
  };
  /// Of the eight bytes of a half, those that a word has: of the second half at
  /// its size, of the first 8 further on.
  static constexpr auto kKept = [] {
    std::array<std::uint64_t, 24> kept{};
    for (std::size_t i = 9; i < kept.size(); ++i)
      kept[i] = i < 16 ? kept[i - 1] << 8 | 0xFF : ~std::uint64_t{0};
    return kept;
  }();
  /// Puts a key that is not there; its slot.
  Slot& take(Key key);
  /// The same, after making room.
  Slot& add(Key key);
  void make_slots(std::size_t count);
  void grow();

  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Unmap> memory_;  // of slots_
  Slot* slots_ = nullptr;
  Slot* end_ = nullptr;
  int shift_ = 0;  // of Lines
  std::size_t used_ = 0, most_ = 0;
  std::vector<std::uint32_t> ids_;
  std::vector<LongWord> long_words_;
  std::vector<char> texts_;  // of long words
};

}  // namespace penstock
