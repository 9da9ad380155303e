#include "penstock/tokenizer/token_ids.h"

#include <algorithm>
#include <bit>
#include <random>

#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::uint64_t kUpper = ~std::uint64_t{UINT32_MAX};

}  // namespace

const std::uint64_t TokenIds::kSecret = std::random_device()();

// The lower bits of a hash choose the slot, and the slot holds its upper half,
// so a search reads the text of hardly any token but the one it finds.
std::size_t TokenIds::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    if (((slots_[at] ^ hash) & kUpper) != 0) continue;
    if (at_place((slots_[at] & UINT32_MAX) - 1).text == text) break;
  }
  return at;
}

std::optional<std::uint32_t> TokenIds::find(std::string_view text,
                                            std::uint64_t hash) const {
  const std::uint64_t slot = slots_[slot_of(text, hash)];
  if (slot == 0) return std::nullopt;
  return at_place((slot & UINT32_MAX) - 1).id;
}

std::size_t TokenIds::put(std::string_view text, std::uint32_t id) {
  reserve(count_ + 1);
  const std::uint64_t hash = hash_of(text);
  std::uint64_t& slot = slots_[slot_of(text, hash)];
  if (slot == 0) {
    PENSTOCK_ASSERT(memory_.size() + bytes_of(text) < UINT32_MAX,
                    "the texts of a vocabulary take 4 GiB");
    slot = (hash & kUpper) | (memory_.size() + 1);
    const Head head{id, static_cast<std::uint32_t>(text.size())};
    memory_.append(reinterpret_cast<const char*>(&head), sizeof head);
    memory_ += text;
    ++count_;
  }
  return (slot & UINT32_MAX) - 1;
}

void TokenIds::set(std::string_view text, std::uint32_t id) {
  std::memcpy(&memory_[put(text, id)], &id, sizeof id);  // first of its Head
}

void TokenIds::reserve(std::size_t tokens) {
  if (2 * tokens <= slots_.size()) return;
  slots_.assign(std::bit_ceil(2 * tokens), 0);
  std::size_t place = 0;
  each([&](const Token& token) {
    const std::uint64_t hash = hash_of(token.text);
    slots_[slot_of(token.text, hash)] = (hash & kUpper) | (place + 1);
    place += bytes_of(token.text);
  });
}

}  // namespace penstock
