#include "penstock/sampling/side_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "penstock/base/error.h"

// The id of a sample is found in three steps: the blocks among which its block
// is, the block by the samples before it, the bit in its block. With 10^9 rows
// each step reads memory far from the last one, and waits for it. So many
// samples are looked up together: all take a step and prefetch what they will
// read in the next one, before the first of them takes it.

namespace penstock {
namespace {

constexpr std::size_t kBlockRows = 512;
/// From one entry of the starts to the next, on average.
constexpr std::int64_t kBlocksPerStart = 16;

// Counting bits by arithmetic on all bytes of a word at once (Knuth, The Art of
// Computer Programming 7.1.3): without -mpopcnt, std::popcount is a call.
constexpr std::uint64_t kEachByte = 0x0101010101010101;
constexpr std::uint64_t kTopBits = kEachByte << 7;
// Three numbers of 9 bits, as a block's count has them.
constexpr std::uint64_t kEachNine = 1 | 1 << 9 | 1 << 18;
constexpr std::uint64_t kTopOfNine = kEachNine << 8;

/// Byte i of the result: the set bits in bytes 0..i of `word`.
std::uint64_t running_ones(std::uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555;
  word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333);
  return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * kEachByte;
}

std::int64_t ones_in(std::uint64_t word) {
  return static_cast<std::int64_t>(running_ones(word) >> 56);
}

/// kPlaces[n][byte]: where the set bit of a byte is that has n below it.
using Places = std::array<std::array<std::uint8_t, 256>, 8>;
constexpr Places kPlaces = [] {
  Places places = {};
  for (std::size_t byte = 0; byte < 256; ++byte)
    for (std::size_t bit = 0, n = 0; bit < 8; ++bit)
      if ((byte >> bit & 1) != 0) places[n++][byte] = std::uint8_t(bit);
  return places;
}();

/// The place of the set bit that has `before` set bits below it.
/// The method of Vigna (2008), "Broadword Implementation of Rank/Select
/// Queries": eight comparisons of bytes at once. A byte's top bit survives the
/// subtraction where at most `before` bits are set up to its end; the number of
/// those bytes is the byte that is looked for. A table finds the bit in it.
int select_in_word(std::uint64_t word, std::uint64_t before) {
  const std::uint64_t ones = running_ones(word);
  // The top bit of each byte that lies wholly before the one we look for.
  const std::uint64_t passed =
      ((before * kEachByte | kTopBits) - ones) & kTopBits;
  const std::uint64_t at = ((passed >> 7) * kEachByte >> 56) * 8;
  const std::uint64_t rest = before - (ones << 8 >> at & 0xff);
  return static_cast<int>(at) + kPlaces[rest][word >> at & 0xff];
}

/// How many of the three numbers in `nines` are at most `limit`, below 512.
/// The same for fields of nine bits. Their top bits are taken off for the
/// subtraction, so that no field borrows from another, and compared by
/// themselves.
std::uint64_t at_most(std::uint64_t nines, std::uint64_t limit) {
  const std::uint64_t limits = limit * kEachNine;
  const std::uint64_t lower = (limits | kTopOfNine) - (nines & ~kTopOfNine);
  const std::uint64_t which =
      ((~nines & limits) | (~(nines ^ limits) & lower)) & kTopOfNine;
  return (which >> 8) * kEachNine >> 18 & 3;
}

/// A bit for each of 8 bytes, the first one lowest: whether it is `byte`.
/// The exact test for zero bytes: adding 0x7f to the low seven bits carries
/// into the top bit unless they are all 0, and never out of the byte. The
/// product moves the eight top bits next to each other.
std::uint64_t equal_bytes(const std::byte* bytes, std::byte byte) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  word ^= kEachByte * std::to_integer<std::uint64_t>(byte);
  const std::uint64_t zeros = ~((word & ~kTopBits) + ~kTopBits) & ~word;
  return ((zeros & kTopBits) >> 7) * 0x0102040810204080 >> 56;
}

std::vector<std::byte> bytes_of(const std::vector<bool>& on_side) {
  std::vector<std::byte> bytes;
  bytes.reserve(on_side.size());
  for (bool on : on_side) bytes.push_back(std::byte{on});
  return bytes;
}

}  // namespace

SideIndex::SideIndex(std::int64_t rows) : size_(rows), all_(true) {}

SideIndex::SideIndex(std::span<const std::byte> sides, std::byte side)
    : size_(std::ranges::count(sides, side)), all_(size_ == std::ssize(sides)) {
  if (all_) return;
  blocks_.resize((sides.size() + kBlockRows - 1) / kBlockRows);
  auto add = [&](std::size_t at, std::uint64_t bits) {
    blocks_[at / kBlockRows].words[at / 64 % 8] |= bits << (at % 64);
  };
  std::size_t at = 0;
  for (; at + 8 <= sides.size(); at += 8)
    add(at, equal_bytes(&sides[at], side));
  for (; at < sides.size(); ++at) add(at, std::uint64_t{sides[at] == side});
  index();
}

SideIndex::SideIndex(const std::vector<bool>& on_side)
    : SideIndex(bytes_of(on_side), std::byte{1}) {}

void SideIndex::index() {
  auto blocks = static_cast<std::int64_t>(blocks_.size());
  auto per_start = static_cast<std::uint64_t>(size_ * kBlocksPerStart / blocks);
  start_bits_ = std::max(0, static_cast<int>(std::bit_width(per_start)) - 1);
  counts_.reserve(blocks_.size());
  std::int64_t before = 0;
  for (const Block& block : blocks_) {
    Count& count = counts_.emplace_back();
    const std::int64_t before_block = before;
    for (std::size_t word = 0; word < 8; ++word) {
      if (word == 2 || word == 4 || word == 6)
        count.bits |= static_cast<std::uint64_t>(before - before_block)
                      << (9 * (word / 2 - 1));
      before += ones_in(block.words[word]);
    }
    count.bits |= static_cast<std::uint64_t>(before_block) << 27;
    for (auto next = std::ssize(starts_); (next << start_bits_) < before;
         ++next)
      starts_.push_back(std::ssize(counts_) - 1);
  }
  starts_.push_back(blocks - 1);
}

SampleId SideIndex::select_in(std::size_t block, std::int64_t nth) const {
  const Count& count = counts_[block];
  auto before = static_cast<std::uint64_t>(nth - count.before());
  const std::uint64_t within = count.bits & ((1 << 27) - 1);
  const std::uint64_t pair = at_most(within, before);
  before -= within << 9 >> (9 * pair) & 0x1ff;
  const std::uint64_t* words = &blocks_[block].words[2 * pair];
  auto ones = static_cast<std::uint64_t>(ones_in(words[0]));
  const std::uint64_t second = before >= ones ? 1 : 0;
  before -= second * ones;
  return static_cast<SampleId>(block * kBlockRows + (2 * pair + second) * 64) +
         select_in_word(words[second], before);
}

SampleId SideIndex::select(std::int64_t nth) const {
  PENSTOCK_ASSERT(nth >= 0 && nth < size_, "a sample lies within its side");
  if (all_) return nth;
  // The last block that has at most `nth` samples before it.
  auto after = std::ranges::upper_bound(counts_, nth, {}, &Count::before);
  return select_in(static_cast<std::size_t>(after - counts_.begin()) - 1, nth);
}

/// One of many samples that are looked for together.
struct SideIndex::Search {
  std::int64_t* rank;
  std::size_t block;   ///< the first that can be the sample's
  std::size_t blocks;  ///< how many can be

  void begin(const SideIndex& index) {
    auto start = static_cast<std::size_t>(*rank >> index.start_bits_);
    block = static_cast<std::size_t>(index.starts_[start]);
    blocks = static_cast<std::size_t>(index.starts_[start + 1]) - block + 1;
    // All counts of the usual search; the first to be read of a long one.
    constexpr std::size_t kCountsPerLine = 64 / sizeof(Count);
    if (blocks <= 3 * kCountsPerLine)
      for (std::size_t i = 0; i < blocks; i += kCountsPerLine)
        __builtin_prefetch(&index.counts_[block + i]);
    else
      __builtin_prefetch(&index.counts_[block + blocks / 2]);
  }
  void find_block(const SideIndex& index) {
    while (blocks > 1) {
      std::size_t half = blocks / 2;
      block += index.counts_[block + half].before() <= *rank ? half : 0;
      blocks -= half;
    }
    __builtin_prefetch(&index.blocks_[block]);
  }
  void finish(const SideIndex& index) { *rank = index.select_in(block, *rank); }
};

void SideIndex::select(std::span<std::int64_t> ranks) const {
  constexpr std::size_t kTogether = 64;
  std::array<Search, kTogether> searches;
  for (std::size_t next = 0; next < ranks.size();) {
    std::size_t count = 0;
    for (; next < ranks.size() && count < kTogether; ++next) {
      if (ranks[next] < 0) continue;
      PENSTOCK_ASSERT(ranks[next] < size_, "a sample lies within its side");
      searches[count++].rank = &ranks[next];
    }
    if (all_) continue;
    std::span<Search> together = std::span(searches).first(count);
    for (Search& search : together) search.begin(*this);
    for (Search& search : together) search.find_block(*this);
    for (Search& search : together) search.finish(*this);
  }
}

bool SideIndex::contains(SampleId id) const {
  if (id < 0) return false;
  if (all_) return id < size_;
  auto at = static_cast<std::size_t>(id);
  return at / kBlockRows < blocks_.size() &&
         ((blocks_[at / kBlockRows].words[at / 64 % 8] >> (at % 64)) & 1u) != 0;
}

std::size_t SideIndex::memory() const {
  return blocks_.capacity() * sizeof(blocks_[0]) +
         counts_.capacity() * sizeof(counts_[0]) +
         starts_.capacity() * sizeof(starts_[0]);
}

}  // namespace penstock
