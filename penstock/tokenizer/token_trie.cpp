#include "penstock/tokenizer/token_trie.h"

namespace penstock {

// The table has a slot for each edge of the tree, so it is at most half full:
// every node but the root is the end of one edge. A key is moved up by one so
// that 0 can mean a free slot.
void TokenTrie::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  --shift_;
  for (const Slot& slot : old) {
    if (slot.key == 0) continue;
    std::size_t at = place(slot.key);
    while (slots_[at].key != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void TokenTrie::add(std::string_view text, std::uint32_t number) {
  std::uint32_t node = 0;
  for (char byte : text) {
    std::uint32_t found = next(node, byte);
    if (found == kNone) {
      found = static_cast<std::uint32_t>(numbers_.size());
      numbers_.push_back(kNone);
      if (numbers_.size() * 2 > slots_.size()) grow();
      const std::uint64_t key = key_of(node, byte);
      std::size_t at = place(key);
      while (slots_[at].key != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {key, found};
    }
    node = found;
  }
  numbers_[node] = number;
}

}  // namespace penstock
