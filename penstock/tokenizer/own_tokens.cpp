// A token is made of its bytes where both its halves are made of theirs and no
// other merge joins them before. The merges of both halves come one after the
// other by their ranks; meanwhile the last token of the first half and the
// first of the second are neighbours: these pairs, and no others, may join.
#include "penstock/tokenizer/own_tokens.h"

namespace penstock {
namespace {

/// Whether two tokens that are made of their bytes are so side by side. Goes
/// back in time, from both of them to the bytes where they keep_apart.
bool keep_apart(const Merges& merges, std::uint32_t first,
                std::uint32_t second) {
  // Until which ranks they are neighbours: of equal merges the left is first.
  std::uint32_t first_until = Merges::kNone, second_until = Merges::kNone;
  while (true) {
    const Merges::Halves one = merges.halves(first),
                         other = merges.halves(second);
    const bool first_is_byte = one.first == Merges::kNone,
               second_is_byte = other.first == Merges::kNone;
    if (first_is_byte && second_is_byte) return true;
    if (second_is_byte || (!first_is_byte && first > second)) {
      first_until = first;
      first = one.second;
    } else {
      second_until = second;
      second = other.first;
    }
    const std::uint32_t rank = merges.rank(first, second);
    if (rank < first_until && rank <= second_until) return false;
  }
}

}  // namespace

std::vector<bool> own_tokens(const Merges& merges,
                             std::span<const std::uint32_t> bytes,
                             std::size_t vocabulary) {
  std::vector<bool> own(vocabulary);
  for (std::uint32_t id : bytes)
    if (id != Merges::kNone) own[id] = true;
  for (std::uint32_t id = 0; id < vocabulary; ++id) {
    const auto [first, second] = merges.halves(id);
    if (first != Merges::kNone)
      own[id] = own[first] && own[second] && keep_apart(merges, first, second);
  }
  return own;
}

}  // namespace penstock
