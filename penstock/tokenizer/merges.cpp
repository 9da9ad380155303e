#include "penstock/tokenizer/merges.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock {
namespace {

/// Up to here a scan for the lowest rank is faster than a heap.
constexpr std::size_t kShort = 192;
constexpr std::size_t kLanes = 8;

/// Where the first of the lowest ranks is; `count` is a multiple of kLanes.
using Lowest = std::size_t(const std::uint32_t* ranks, std::size_t count);

// Selects instead of branches: where the minimum is cannot be predicted.
std::size_t lowest_plain(const std::uint32_t* ranks, std::size_t count) {
  std::size_t least = 0;
  std::uint32_t rank = ranks[0];
  for (std::size_t i = 1; i < count; ++i) {
    bool lower = ranks[i] < rank;
    rank = lower ? ranks[i] : rank;
    least = lower ? i : least;
  }
  return least;
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi"))) std::size_t lowest_avx2(
    const std::uint32_t* ranks, std::size_t count) {
  auto load = [ranks](std::size_t i) __attribute__((target("avx2,bmi"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ranks + i));
  };
  // The first pass ends, by three halvings, with the minimum in every lane. The
  // second finds the first lane that equals it, which is the leftmost place.
  __m256i all = load(0);
  for (std::size_t i = kLanes; i < count; i += kLanes)
    all = _mm256_min_epu32(all, load(i));
  all = _mm256_min_epu32(all, _mm256_permute2x128_si256(all, all, 1));
  all = _mm256_min_epu32(all, _mm256_shuffle_epi32(all, 0x4E));
  all = _mm256_min_epu32(all, _mm256_shuffle_epi32(all, 0xB1));
  for (std::size_t i = 0;; i += kLanes) {
    __m256i same = _mm256_cmpeq_epi32(load(i), all);
    int found = _mm256_movemask_ps(_mm256_castsi256_ps(same));
    if (found != 0)
      return i + static_cast<std::size_t>(
                     __builtin_ctz(static_cast<unsigned>(found)));
  }
}
#endif

Lowest* lowest_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"))
    return lowest_avx2;
#endif
  return lowest_plain;
}

Lowest* const lowest = lowest_here();

bool are_in_order(const std::vector<Merges::Merge>& merges) {
  std::uint32_t before = 0;
  for (const auto& [first, second, whole] : merges) {
    if (whole <= before || first >= whole || second >= whole) return false;
    before = whole;
  }
  return true;
}

}  // namespace

// The table is open-addressed with linear probing. Its invariants:
// 1. At most two thirds of the slots are taken, so every probe ends at a free
//    slot. Nothing is ever erased, so a free slot proves that a pair is absent.
// 2. No taken slot equals kEmpty: a rank is at most kMostMerges - 1, so its 22
//    bits are never all ones.
// 3. A pair of ids below kLow is found in `low_` alone, at any load.
// The multiplier is 2^64 divided by the golden ratio (Fibonacci hashing, Knuth,
// The Art of Computer Programming, volume 3, section 6.4); the upper bits of
// the product are the well mixed ones, hence the shift.
Merges::Merges(const std::vector<Merge>& merges)
    : in_order_(are_in_order(merges)) {
  std::size_t size = std::bit_ceil(merges.size() + merges.size() / 2 + 2);
  slots_.assign(size, kEmpty);
  mask_ = size - 1;
  low_.assign(kLow * kLow, kNone);
  shift_ = 64 - std::countr_zero(size);
  if (in_order_ && !merges.empty())
    halves_.assign(merges.back().whole + std::size_t{1}, {kNone, kNone});
  for (const Merge& merge : merges) {
    const auto rank =
        in_order_ ? merge.whole : static_cast<std::uint32_t>(wholes_.size());
    std::uint64_t key = std::uint64_t{merge.first} << 21 | merge.second;
    std::size_t at = key * kSpread >> shift_;
    while (slots_[at] != kEmpty && slots_[at] >> 22 != key)
      at = (at + 1) & mask_;
    slots_[at] = key << 22 | rank;
    if ((merge.first | merge.second) < kLow)
      low_[merge.first * kLow + merge.second] = rank;
    if (in_order_)
      halves_[merge.whole] = {merge.first, merge.second};
    else
      wholes_.push_back(merge.whole);
  }
}

std::size_t Merger::merge(std::span<std::uint32_t> symbols,
                          std::uint32_t* sizes) {
  if (symbols.size() < 2) return symbols.size();
  return symbols.size() <= kShort ? merge_short(symbols, sizes)
                                  : merge_long(symbols, sizes);
}

// Quadratic, but a word is short and each round is one vector scan and two
// moves. Before each scan:
// 1. ranks[i] is the rank of (symbols[i], symbols[i + 1]) for i < size - 1.
// 2. ranks[i] is kNone from size - 1 up to the end of the last lane that the
//    scan reads, so it needs no tail.
// 3. The scan yields the first of equal ranks, so of pairs that overlap, as in
//    "aaa", the leftmost is merged.
std::size_t Merger::merge_short(std::span<std::uint32_t> symbols,
                                std::uint32_t* sizes) {
  // From the last symbol on there is no pair, up to whole lanes.
  std::uint32_t ranks[kShort + kLanes];
  std::size_t size = symbols.size();
  std::fill(ranks + size - 1, ranks + size + kLanes - 1, Merges::kNone);
  for (std::size_t i = 0; i + 1 < size; ++i)
    ranks[i] = merges_->rank(symbols[i], symbols[i + 1]);
  while (size > 1) {
    std::size_t least = lowest(ranks, (size - 2 + kLanes) / kLanes * kLanes);
    std::uint32_t rank = ranks[least];
    if (rank == Merges::kNone) break;
    symbols[least] = merges_->whole(rank);
    std::size_t behind = size - least - 2;
    std::memmove(&symbols[least + 1], symbols.data() + least + 2,
                 behind * sizeof(symbols[0]));
    std::memmove(ranks + least, ranks + least + 1,
                 (behind + 1) * sizeof(ranks[0]));
    if (sizes != nullptr) {
      sizes[least] += sizes[least + 1];
      std::memmove(sizes + least + 1, sizes + least + 2,
                   behind * sizeof(sizes[0]));
    }
    --size;
    if (least + 1 < size)
      ranks[least] = merges_->rank(symbols[least], symbols[least + 1]);
    if (least > 0)
      ranks[least - 1] = merges_->rank(symbols[least - 1], symbols[least]);
  }
  return size;
}

// Both arrays are moved by a constant number of bytes, which the compiler turns
// into a few vector moves; what is past `size` is moved as well, and never read
// as a symbol. The two ranks next to the new symbol are left out of date:
// merge_together() reads them one round later, when the memory has answered.
bool Merger::merge_lowest(ShortWord& word) const {
  const std::size_t at = lowest(word.ranks, ShortWord::kSymbols);
  const std::uint32_t rank = word.ranks[at];
  if (rank == Merges::kNone) return false;
  constexpr std::size_t kMoved = sizeof(word.ranks) / 2 - sizeof(rank);
  word.symbols[at] = merges_->whole(rank);
  std::memmove(&word.symbols[at + 1], &word.symbols[at + 2], kMoved);
  std::memmove(&word.ranks[at], &word.ranks[at + 1], kMoved);
  word.merged_at = at;
  --word.size;
  if (at + 1 < word.size)
    merges_->fetch(word.symbols[at], word.symbols[at + 1]);
  if (at > 0) merges_->fetch(word.symbols[at - 1], word.symbols[at]);
  return true;
}

// Each round merges once in every word that still has a pair. A rank is looked
// up at the word's next turn, so the misses of up to kTogether words overlap
// instead of being waited for one by one. A finished word is replaced by the
// last one: the order of words in `going` has no meaning.
void Merger::merge_together(std::span<ShortWord> words) const {
  ShortWord* going[kTogether];
  std::size_t count = 0;
  for (ShortWord& word : words) {
    std::fill(std::begin(word.ranks), std::end(word.ranks), Merges::kNone);
    for (std::size_t i = 0; i + 1 < word.size; ++i)
      word.ranks[i] = merges_->rank(word.symbols[i], word.symbols[i + 1]);
    going[count] = &word;
    count += merge_lowest(word) ? 1 : 0;
  }
  while (count > 0) {
    for (std::size_t i = 0; i < count;) {
      ShortWord& word = *going[i];
      const std::size_t at = word.merged_at;
      if (at + 1 < word.size)
        word.ranks[at] = merges_->rank(word.symbols[at], word.symbols[at + 1]);
      if (at > 0)
        word.ranks[at - 1] =
            merges_->rank(word.symbols[at - 1], word.symbols[at]);
      if (merge_lowest(word))
        ++i;
      else
        going[i] = going[--count];
    }
  }
}

std::size_t Merger::merge_long(std::span<std::uint32_t> symbols,
                               std::uint32_t* sizes) {
  // Links between what is left, and a heap of (rank, place). An entry whose
  // rank is no longer that of its place is out of date.
  // O(n log n) for the long words that a scan would make quadratic. The order
  // of the heap is that of merge_short(): lowest rank first, then leftmost,
  // because a symbol keeps the place of its first byte.
  //
  // Distinct pairs have distinct ranks, so an entry whose rank equals that of
  // its place still means the same pair, even when that was pushed twice. A
  // symbol that was swallowed has the rank kNone, which no entry has.
  std::size_t size = symbols.size();
  ranks_.resize(size);
  next_.resize(size);
  before_.resize(size);
  heap_.clear();
  for (std::size_t i = 0; i < size; ++i) {
    next_[i] = static_cast<std::uint32_t>(i + 1);
    before_[i] = static_cast<std::uint32_t>(i - 1);
    ranks_[i] = i + 1 < size ? merges_->rank(symbols[i], symbols[i + 1])
                             : Merges::kNone;
    if (ranks_[i] != Merges::kNone)
      heap_.push_back(std::uint64_t{ranks_[i]} << 32 | i);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  auto refresh = [&](std::size_t at) {
    ranks_[at] = next_[at] < size
                     ? merges_->rank(symbols[at], symbols[next_[at]])
                     : Merges::kNone;
    if (ranks_[at] == Merges::kNone) return;
    heap_.push_back(std::uint64_t{ranks_[at]} << 32 | at);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    std::uint64_t top = heap_.back();
    heap_.pop_back();
    std::size_t at = top & UINT32_MAX;
    if (ranks_[at] != top >> 32) continue;
    std::size_t gone = next_[at];
    symbols[at] = merges_->whole(ranks_[at]);
    if (sizes != nullptr) sizes[at] += sizes[gone];
    ranks_[gone] = Merges::kNone;
    next_[at] = next_[gone];
    if (next_[at] < size) before_[next_[at]] = static_cast<std::uint32_t>(at);
    refresh(at);
    if (at > 0) refresh(before_[at]);
  }
  std::size_t count = 0;
  for (std::size_t at = 0; at < size; at = next_[at]) {
    if (sizes != nullptr) sizes[count] = sizes[at];
    symbols[count++] = symbols[at];
  }
  return count;
}

}  // namespace penstock
