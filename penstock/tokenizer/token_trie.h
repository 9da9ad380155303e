#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock {

/// Texts by their bytes, of which each has a number: a tree of bytes in one
/// open table. Immutable after its making.
class TokenTrie {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// The later of two equal texts counts.
  void add(std::string_view text, std::uint32_t number);

  /// From node to node, beginning at 0; kNone where no text goes on so.
  std::uint32_t next(std::uint32_t node, char byte) const {
    const std::uint64_t key = key_of(node, byte);
    for (std::size_t at = place(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == key) return slots_[at].node;
      if (slots_[at].key == 0) return kNone;
    }
  }
  /// The number of the text that ends at a node, or kNone.
  std::uint32_t number(std::uint32_t node) const { return numbers_[node]; }

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: free
    std::uint32_t node = 0;
  };
  static std::uint64_t key_of(std::uint32_t node, char byte) {
    return (std::uint64_t{node} << 8 | static_cast<unsigned char>(byte)) + 1;
  }
  std::size_t place(std::uint64_t key) const {
    return key * 0x9E3779B97F4A7C15 >> shift_;
  }
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  int shift_ = 54;
  std::vector<std::uint32_t> numbers_ = {kNone};
};

}  // namespace penstock
