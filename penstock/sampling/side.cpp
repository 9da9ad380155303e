#include <algorithm>
#include <bit>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/spec.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

constexpr std::size_t kWordsPerBlock = 8;  // 512 bits: one cache line

// Counting bits by arithmetic on all bytes of a word at once (Knuth, The Art of
// Computer Programming 7.1.3): without -mpopcnt, std::popcount is a call.
constexpr std::uint64_t kEachByte = 0x0101010101010101;
constexpr std::uint64_t kTopBits = kEachByte << 7;

/// Byte i of the result: the set bits in bytes 0..i of `word`.
std::uint64_t running_ones(std::uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555;
  word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333);
  return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * kEachByte;
}

int ones_in(std::uint64_t word) {
  return static_cast<int>(running_ones(word) >> 56);
}

/// The place of the set bit that has `before` set bits below it.
int select_in_word(std::uint64_t word, int before) {
  std::uint64_t ones = running_ones(word);
  // The top bit of each byte that lies wholly before the one we look for.
  std::uint64_t passed =
      ((static_cast<std::uint64_t>(before) * kEachByte | kTopBits) - ones) &
      kTopBits;
  int byte = static_cast<int>(((passed >> 7) * kEachByte) >> 56) * 8;
  before -= static_cast<int>(((ones << 8) >> byte) & 0xff);
  std::uint64_t rest = word >> byte;
  for (; before > 0; --before) rest &= rest - 1;
  return byte + std::countr_zero(rest);
}

}  // namespace

Split parse_split(const Json* section, const std::string& path) {
  Split split;
  if (section == nullptr || section->is_null()) return split;
  Spec spec(*section, path);
  split.val = spec.number("val", 0.0, 0.0, 1.0);
  split.train = spec.number("train", 1.0 - split.val, 0.0, 1.0);
  split.seed = static_cast<std::uint64_t>(
      spec.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  split.by = spec.text("by", "");
  spec.finish();
  if (split.train + split.val > 1.0)
    spec.refuse("val",
                "train " + Json(split.train).dump() + " and val " +
                    Json(split.val).dump() + " are more than 1 together",
                "lower one of them; what they leave of 1 is not used");
  return split;
}

Side side_of(const Split& split, std::string_view by_value) {
  // 53 bits, so that the quotient stays below 1 after rounding.
  double u =
      static_cast<double>(hash64(by_value, split.seed) >> 11) * 0x1.0p-53;
  if (u < split.train) return Side::train;
  return u < split.train + split.val ? Side::val : Side::unused;
}

SideIndex::SideIndex(std::int64_t rows) : size_(rows), all_(true) {}

SideIndex::SideIndex(const std::vector<bool>& on_side)
    : size_(std::ranges::count(on_side, true)),
      all_(size_ == static_cast<std::int64_t>(on_side.size())) {
  if (all_) return;
  bits_.resize((on_side.size() + 63) / 64);
  for (std::size_t i = 0; i < on_side.size(); ++i)
    bits_[i / 64] |= std::uint64_t{on_side[i]} << (i % 64);
  counts_.resize((bits_.size() + kWordsPerBlock - 1) / kWordsPerBlock);
  std::int64_t before = 0;
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    if (word % kWordsPerBlock == 0) counts_[word / kWordsPerBlock] = before;
    before += std::popcount(bits_[word]);
  }
}

SampleId SideIndex::select(std::int64_t nth) const {
  PENSTOCK_ASSERT(nth >= 0 && nth < size_, "a sample lies within its side");
  if (all_) return nth;
  // The last block that has at most `nth` samples before it.
  auto after = std::ranges::upper_bound(counts_, nth);
  auto block = static_cast<std::size_t>(after - counts_.begin()) - 1;
  std::int64_t before = nth - counts_[block];
  std::size_t word = block * kWordsPerBlock;
  for (; before >= ones_in(bits_[word]); ++word) before -= ones_in(bits_[word]);
  int bit = select_in_word(bits_[word], static_cast<int>(before));
  return static_cast<SampleId>(word * 64) + bit;
}

bool SideIndex::contains(SampleId id) const {
  if (id < 0) return false;
  if (all_) return id < size_;
  auto at = static_cast<std::size_t>(id);
  return at / 64 < bits_.size() && ((bits_[at / 64] >> (at % 64)) & 1u) != 0;
}

std::size_t SideIndex::memory() const {
  return bits_.capacity() * sizeof(bits_[0]) +
         counts_.capacity() * sizeof(counts_[0]);
}

}  // namespace penstock
