#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// Which two tokens become one, and in which order that is tried. Immutable
/// after its making.
class Merges {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kMostTokens = std::size_t{1} << 21;
  static constexpr std::size_t kMostMerges = (std::size_t{1} << 22) - 1;

  struct Merge {
    std::uint32_t first, second, whole;
  };
  Merges() : Merges(std::vector<Merge>()) {}
  /// In the order of their ranks; of a pair that comes twice counts the last.
  explicit Merges(const std::vector<Merge>& merges);

  /// The rank of a pair, or kNone.
  std::uint32_t rank(std::uint32_t first, std::uint32_t second) const {
    if ((first | second) < kLow) return low_[first * kLow + second];
    std::uint64_t key = std::uint64_t{first} << 21 | second;
    for (std::size_t at = key * kSpread >> shift_;; at = (at + 1) & mask_) {
      std::uint64_t slot = slots_[at];
      if (slot >> 22 == key) return slot & kMostMerges;
      if (slot == kEmpty) return kNone;
    }
  }
  /// Asks the memory for what rank() reads.
  void fetch(std::uint32_t first, std::uint32_t second) const {
    const std::uint64_t key = std::uint64_t{first} << 21 | second;
    __builtin_prefetch(&slots_[key * kSpread >> shift_]);
  }
  std::uint32_t whole(std::uint32_t rank) const {
    return in_order_ ? rank : wholes_[rank];
  }

  /// Whether ids grow from merge to merge, above those of what is merged: then
  /// a rank is the id of what it makes, and halves() says of what.
  bool in_order() const { return in_order_; }
  struct Halves {
    std::uint32_t first, second;
  };
  /// Twice kNone where no merge makes it.
  Halves halves(std::uint32_t whole) const {
    return whole < halves_.size() ? halves_[whole] : Halves{kNone, kNone};
  }

 private:
  static constexpr std::uint64_t kEmpty = UINT64_MAX;
  static constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;

  /// Of ids below this, which bytes have, the pairs lie in a table.
  static constexpr std::uint32_t kLow = 256;

  std::vector<std::uint32_t> low_;
  std::vector<std::uint64_t> slots_;  // pair in 42 bits, rank in 22
  bool in_order_ = false;
  std::vector<std::uint32_t> wholes_;  // unless in_order_
  std::vector<Halves> halves_;         // if in_order_
  int shift_ = 0;
  std::size_t mask_ = 0;
};

/// Applies merges to a word: always that of the lowest rank, of several the
/// leftmost. Keeps its memory; for one thread.
class Merger {
 public:
  explicit Merger(const Merges& merges) : merges_(&merges) {}
  /// `symbols` becomes the tokens of the word; returns how many they are. Where
  /// there are `sizes`, as many, those of symbols that merge are added up.
  std::size_t merge(std::span<std::uint32_t> symbols,
                    std::uint32_t* sizes = nullptr);

  /// A word of at most kSymbols; `symbols` becomes its tokens, `size` of them.
  struct ShortWord {
    static constexpr std::size_t kSymbols = 16;

    std::size_t size, merged_at;
    // Twice as many as are used: all behind a place are moved by one.
    std::uint32_t symbols[2 * kSymbols];
    std::uint32_t ranks[2 * kSymbols];
  };
  static constexpr std::size_t kTogether = 16;
  /// At most kTogether words, each as by merge(): while one waits for the
  /// memory, others go on.
  void merge_together(std::span<ShortWord> words) const;

 private:
  /// False where there is no pair that merges.
  bool merge_lowest(ShortWord& word) const;
  std::size_t merge_short(std::span<std::uint32_t> symbols,
                          std::uint32_t* sizes);
  std::size_t merge_long(std::span<std::uint32_t> symbols,
                         std::uint32_t* sizes);

  const Merges* merges_;
  std::vector<std::uint32_t> ranks_, next_, before_;
  std::vector<std::uint64_t> heap_;
};

}  // namespace penstock
