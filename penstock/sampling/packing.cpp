#include "penstock/sampling/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/permutation.h"

// Best fit decreasing: pieces are sorted by length, the longest first, by
// counting; each goes into the bin that has the least room left for it, or else
// opens one. Bins with the same room left are a stack, linked through the bins,
// and a tree of 64-bit words says which stacks are not empty, so that "the
// least room that is enough" costs one look at each of its levels.
//
// How full bins get depends on the lengths alone. So a plan of another epoch
// need not be computed: within each length the pieces change places by a keyed
// permutation.

namespace penstock {
namespace {

constexpr std::int32_t kMostSize = 1 << 24;

/// A set of numbers below `size` that finds the next one above a number.
class NumberSet {
 public:
  explicit NumberSet(std::size_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }
  void add(std::size_t number) {
    for (std::vector<std::uint64_t>& level : levels_) {
      level[number / 64] |= std::uint64_t{1} << (number % 64);
      number /= 64;
    }
  }
  void remove(std::size_t number) {
    for (std::vector<std::uint64_t>& level : levels_) {
      std::uint64_t& word = level[number / 64];
      word &= ~(std::uint64_t{1} << (number % 64));
      if (word != 0) return;
      number /= 64;
    }
  }
  /// The least member that is at least `number`; SIZE_MAX: there is none.
  std::size_t find_from(std::size_t number) const {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const std::size_t word = number / 64;
      if (word >= levels_[l].size()) return kNone;
      const std::uint64_t above = levels_[l][word] >> (number % 64);
      if (above != 0)
        return down(l,
                    number + static_cast<std::size_t>(std::countr_zero(above)));
      number = word + 1;
    }
    return kNone;
  }
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

 private:
  /// The least member below number `at` of level `l`.
  std::size_t down(std::size_t l, std::size_t at) const {
    while (l-- > 0)
      at = at * 64 + static_cast<std::size_t>(std::countr_zero(levels_[l][at]));
    return at;
  }
  std::vector<std::vector<std::uint64_t>> levels_;
};

constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();

}  // namespace

/// The bins of one window while they are filled.
class Bins::Filling {
 public:
  explicit Filling(std::int32_t size)
      : size_(static_cast<std::size_t>(size)),
        rooms_(size_ + 1),
        first_(size_ + 1, kEnd) {}

  /// The bin that a piece goes into.
  std::uint32_t place(std::int32_t length) {
    const auto need = static_cast<std::size_t>(length);
    std::size_t room = rooms_.find_from(need);
    std::uint32_t bin = 0;
    if (room == NumberSet::kNone) {
      bin = static_cast<std::uint32_t>(next_.size());
      next_.push_back(kEnd);
      room = size_;
    } else {
      bin = first_[room];
      first_[room] = next_[bin];
      if (first_[room] == kEnd) rooms_.remove(room);
    }
    put_back(bin, room - need);
    return bin;
  }
  std::size_t bins() const { return next_.size(); }
  void clear() {
    for (std::size_t room = 0;
         (room = rooms_.find_from(room)) != NumberSet::kNone;) {
      first_[room] = kEnd;
      rooms_.remove(room);
    }
    next_.clear();
  }
  std::vector<std::uint32_t> bin_of;  ///< by piece; scratch

 private:
  void put_back(std::uint32_t bin, std::size_t room) {
    if (room == 0) return;
    if (first_[room] == kEnd) rooms_.add(room);
    next_[bin] = first_[room];
    first_[room] = bin;
  }
  const std::size_t size_;
  NumberSet rooms_;
  std::vector<std::uint32_t> first_;  // bin, by the room that is left in it
  std::vector<std::uint32_t> next_;   // by bin
};

Bins::Bins(std::span<const std::int32_t> lengths, const BinRules& rules)
    : rules_(rules) {
  PENSTOCK_ASSERT(rules.size >= 1 && rules.size <= kMostSize,
                  "a bin holds elements");
  PENSTOCK_ASSERT(lengths.size() < kEnd, "pieces count to 2^32");
  for (std::int32_t length : lengths) {
    elements_ += length;
    if (length == 0)
      ++empty_;
    else
      ++samples_;
  }
  if (rules.wrapped)
    wrap(lengths);
  else
    fit(lengths);
}

void Bins::wrap(std::span<const std::int32_t> lengths) {
  std::int32_t room = rules_.size;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] > room) ++cut_;
    for (std::int32_t begin = 0; begin < lengths[s];) {
      const std::int32_t length = std::min(lengths[s] - begin, room);
      pieces_.push_back({static_cast<std::uint32_t>(s), begin, length});
      begin += length;
      room -= length;
      if (room > 0) continue;
      ends_.push_back(std::ssize(pieces_));
      room = rules_.size;
    }
  }
  if (room < rules_.size) ends_.push_back(std::ssize(pieces_));
}

void Bins::fit(std::span<const std::int32_t> lengths) {
  const auto count = std::ssize(lengths);
  Filling filling(rules_.size);
  pieces_.reserve(lengths.size());
  slots_.reserve(lengths.size());
  if (rules_.window == 0 || rules_.window >= count)
    return fit_window(lengths, {}, filling);
  Random random(rules_.seed, 0, 0, 0x7061636b);  // "pack"
  const Permutation order(count, random.next());
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < count; first += rules_.window) {
    samples.resize(
        static_cast<std::size_t>(std::min(rules_.window, count - first)));
    order.range(first, samples);
    fit_window(lengths, samples, filling);
  }
}

/// Packs these samples; all of them where there are none.
void Bins::fit_window(std::span<const std::int32_t> lengths,
                      std::span<const std::int64_t> samples, Filling& filling) {
  const auto size = static_cast<std::size_t>(rules_.size);
  const std::size_t count = samples.empty() ? lengths.size() : samples.size();
  auto sample = [&](std::size_t i) {
    return samples.empty() ? i : static_cast<std::size_t>(samples[i]);
  };
  // Where the pieces of each length begin, the longest first.
  std::vector<std::uint64_t> starts(size + 2, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::size_t>(lengths[sample(i)]);
    if (length <= size) {  // most are: no division
      ++starts[length];
      continue;
    }
    ++cut_;
    starts[size] += length / size;
    if (length % size != 0) ++starts[length % size];
  }
  const std::size_t first = pieces_.size();
  std::uint64_t at = first;
  for (std::size_t length = size; length > 0; --length) {
    const std::uint64_t begin = std::exchange(starts[length], at);
    at += begin;
    if (rules_.repack && begin > 1)
      groups_.push_back({static_cast<std::uint32_t>(starts[length]),
                         static_cast<std::uint32_t>(at)});
  }
  PENSTOCK_ASSERT(at < kEnd, "pieces count to 2^32");
  pieces_.resize(at);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t s = sample(i);
    for (std::int32_t begin = 0; begin < lengths[s]; begin += rules_.size) {
      const std::int32_t length = std::min(lengths[s] - begin, rules_.size);
      pieces_[starts[static_cast<std::size_t>(length)]++] = {
          static_cast<std::uint32_t>(s), begin, length};
    }
  }
  filling.clear();
  filling.bin_of.resize(pieces_.size() - first);
  for (std::size_t p = first; p < pieces_.size(); ++p)
    filling.bin_of[p - first] = filling.place(pieces_[p].length);
  // Pieces by bin.
  const std::size_t first_bin = ends_.size();
  ends_.resize(first_bin + filling.bins() + 1, 0);
  std::int64_t* begins = ends_.data() + first_bin + 1;
  for (std::uint32_t bin : filling.bin_of) ++begins[bin];
  std::int64_t before = static_cast<std::int64_t>(first);
  for (std::size_t b = 0; b < filling.bins(); ++b)
    before += std::exchange(begins[b], before);
  slots_.resize(pieces_.size());
  for (std::size_t p = first; p < pieces_.size(); ++p)
    slots_[static_cast<std::size_t>(begins[filling.bin_of[p - first]]++)] =
        static_cast<std::uint32_t>(p);
  ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(first_bin));
}

Bins::Piece Bins::piece_at(std::uint32_t slot, std::int64_t epoch) const {
  if (slots_.empty()) return pieces_[slot];
  const std::uint32_t piece = slots_[slot];
  if (!rules_.repack || epoch == 0) return pieces_[piece];
  auto group = std::ranges::upper_bound(groups_, piece, {}, &Group::begin);
  if (group == groups_.begin()) return pieces_[piece];
  --group;
  if (piece >= group->end) return pieces_[piece];
  Random random(rules_.seed, static_cast<std::uint64_t>(epoch), group->begin,
                0x72657061);  // "repa"
  const Permutation places(group->end - group->begin, random.next());
  return pieces_[group->begin +
                 static_cast<std::size_t>(places(piece - group->begin))];
}

std::int32_t Bins::append(std::int64_t bin, std::int64_t epoch,
                          std::vector<SampleRange>& to) const {
  PENSTOCK_ASSERT(bin >= 0 && bin < count(), "there is such a bin");
  const auto b = static_cast<std::size_t>(bin);
  std::int32_t left = rules_.size;
  for (std::int64_t at = b == 0 ? 0 : ends_[b - 1]; at < ends_[b]; ++at) {
    const Piece piece = piece_at(static_cast<std::uint32_t>(at), epoch);
    to.push_back({.sample = piece.sample,
                  .begin = piece.begin,
                  .end = piece.begin + piece.length});
    left -= piece.length;
  }
  return left;
}

double filled_share(std::int64_t elements, std::int64_t bins,
                    std::int32_t size) {
  return bins == 0 ? 1
                   : static_cast<double>(elements) /
                         (static_cast<double>(bins) * size);
}

double Bins::efficiency() const {
  return filled_share(elements_, count(), rules_.size);
}

}  // namespace penstock
