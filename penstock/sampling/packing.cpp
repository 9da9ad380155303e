#include "penstock/sampling/packing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "penstock/base/aligned.h"
#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/permutation.h"

// Best fit decreasing: pieces are sorted by length, the longest first, by
// counting; each goes into the bin that has the least room left for it, or else
// opens one. Bins with the same room left are a stack, linked through the bins,
// and a tree of 64-bit words says which stacks are not empty, so that "the
// least room that is enough" costs one look at each of its levels. A bin that
// has just taken a piece, and has room for another of that length, is the one
// with the least room for it: pieces of one length are placed bin by bin.
//
// How full bins get depends on the lengths alone. So a plan of another epoch
// need not be computed: within each length the pieces change places by a keyed
// permutation. Where it repacks, pieces are kept by length for that; else they
// are kept by bin, one after the other.

namespace penstock {
namespace {

constexpr std::int32_t kMostSize = 1 << 24;

/// A set of numbers below `size` that finds the next one above a number.
/// A bit of a level says whether the word of that number one level below has
/// any bit set. So a number takes part in one word of each level, and an
/// operation looks at each level twice at most; the largest bin has five
/// levels.
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
  /// The least member that is at least `number`; SIZE_MAX: none.
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

/// The bins of one window while they are filled. Between two calls of place():
/// 1. first_[room] begins a list, linked by next_, of all bins with exactly
///    this room left; `rooms_` holds the rooms whose list is not empty.
/// 2. A full bin is in no list, every other bin in one.
/// 3. `runs` names the bins of all pieces placed so far, in their order.
class Bins::Filling {
 public:
  explicit Filling(std::int32_t size)
      : size_(static_cast<std::size_t>(size)),
        rooms_(size_ + 1),
        first_(size_ + 1, kEnd) {}

  /// Pieces of one length that follow each other and go into one bin.
  struct Run {
    std::uint32_t bin, pieces;
  };
  /// Places the first of so many pieces, and as many of the others as go into
  /// the same bin. Returns how many these are.
  std::uint32_t place(std::int32_t length, std::uint64_t pieces) {
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
    const auto taken = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(pieces, room / need));
    put_back(bin, room - taken * need);
    runs.push_back({bin, taken});
    return taken;
  }
  std::size_t bins() const { return next_.size(); }
  void clear() {
    for (std::size_t room = 0;
         (room = rooms_.find_from(room)) != NumberSet::kNone;) {
      first_[room] = kEnd;
      rooms_.remove(room);
    }
    next_.clear();
    runs.clear();
  }
  std::vector<Run> runs;  ///< of all pieces, in their order; scratch

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
    empty_ += length == 0 ? 1 : 0;
  }
  samples_ = std::ssize(lengths) - empty_;
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
  if (rules_.repack) slots_.reserve(lengths.size());
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

namespace {

/// Numbers that are written once: many are in huge pages, which cost fewer
/// faults.
template <class Number>
class Numbers {
 public:
  explicit Numbers(std::size_t count)
      : memory_(allocate_aligned(count * sizeof(Number))),
        numbers_(reinterpret_cast<Number*>(memory_.get())) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  Number& operator[](std::size_t at) const { return numbers_[at]; }

 private:
  AlignedBytes memory_;
  Number* numbers_;
};

/// The pieces of some samples, the longest first.
class SortedPieces {
 public:
  /// `sample_at(i)` for each i below `count`.
  template <class SampleAt>
  SortedPieces(std::span<const std::int32_t> lengths, std::int32_t most,
               std::size_t count, SampleAt sample_at)
      : of_length_(static_cast<std::size_t>(most) + 1) {
    find_lengths(lengths, count, sample_at);
    std::vector<std::uint64_t> next(of_length_.size());
    for (std::size_t length = of_length_.size() - 1; length > 0; --length) {
      next[length] = count_;
      count_ += of_length_[length];
    }
    PENSTOCK_ASSERT(count_ < kEnd, "pieces count to 2^32");
    samples_.emplace(count_);
    if (cut_ > 0) begins_.emplace(count_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t s = sample_at(i);
      for (std::int32_t begin = 0; begin < lengths[s]; begin += most) {
        const std::int32_t length = std::min(lengths[s] - begin, most);
        const std::uint64_t at = next[static_cast<std::size_t>(length)]++;
        (*samples_)[at] = static_cast<std::uint32_t>(s);
        if (begins_) (*begins_)[at] = begin;
      }
    }
  }
  /// How many samples are longer than the longest piece may be.
  std::int64_t cut() const { return cut_; }
  std::size_t count() const { return count_; }
  std::uint32_t sample(std::size_t at) const { return (*samples_)[at]; }
  std::int32_t begin(std::size_t at) const {
    return begins_ ? (*begins_)[at] : 0;
  }
  /// Calls `act` with each length that there is, and how many pieces have it.
  template <class Act>
  void each_length(Act act) const {
    for (std::size_t length = of_length_.size() - 1; length > 0; --length)
      if (of_length_[length] > 0)
        act(static_cast<std::int32_t>(length), of_length_[length]);
  }

 private:
  template <class SampleAt>
  void find_lengths(std::span<const std::int32_t> lengths, std::size_t count,
                    SampleAt sample_at) {
    const std::size_t most = of_length_.size() - 1;
    for (std::size_t i = 0; i < count; ++i) {
      const auto length = static_cast<std::size_t>(lengths[sample_at(i)]);
      if (length <= most) {  // most are: no division
        ++of_length_[length];
        continue;
      }
      ++cut_;
      of_length_[most] += length / most;
      if (length % most != 0) ++of_length_[length % most];
    }
  }
  std::vector<std::uint64_t> of_length_;
  std::int64_t cut_ = 0;
  std::size_t count_ = 0;
  std::optional<Numbers<std::uint32_t>> samples_;
  std::optional<Numbers<std::int32_t>> begins_;  // where some are cut
};

}  // namespace

/// Packs these samples; all of them if none exist.
void Bins::fit_window(std::span<const std::int32_t> lengths,
                      std::span<const std::int64_t> samples, Filling& filling) {
  const SortedPieces sorted(
      lengths, rules_.size, samples.empty() ? lengths.size() : samples.size(),
      [&](std::size_t i) {
        return samples.empty() ? i : static_cast<std::size_t>(samples[i]);
      });
  cut_ += sorted.cut();
  filling.clear();
  sorted.each_length([&](std::int32_t length, std::uint64_t pieces) {
    while (pieces > 0) pieces -= filling.place(length, pieces);
  });
  const std::size_t first = pieces_.size(), first_bin = ends_.size();
  PENSTOCK_ASSERT(first + sorted.count() < kEnd, "pieces count to 2^32");
  pieces_.resize(first + sorted.count());
  if (rules_.repack) slots_.resize(pieces_.size());
  // Where the pieces of each bin begin.
  ends_.resize(first_bin + filling.bins() + 1, 0);
  std::int64_t* next = ends_.data() + first_bin + 1;
  for (const Filling::Run& run : filling.runs) next[run.bin] += run.pieces;
  auto before = static_cast<std::int64_t>(first);
  for (std::size_t b = 0; b < filling.bins(); ++b)
    before += std::exchange(next[b], before);
  std::size_t piece = 0;
  auto run = filling.runs.begin();
  sorted.each_length([&](std::int32_t length, std::uint64_t pieces) {
    const std::size_t begin = first + piece, end = begin + pieces;
    if (rules_.repack && pieces > 1)
      groups_.push_back(
          {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    for (; first + piece < end; ++run) {
      std::int64_t& to = next[run->bin];
      for (std::uint32_t i = 0; i < run->pieces; ++i, ++piece, ++to) {
        const auto place = static_cast<std::size_t>(to);
        if (rules_.repack)
          slots_[place] = static_cast<std::uint32_t>(first + piece);
        pieces_[rules_.repack ? first + piece : place] = {
            sorted.sample(piece), sorted.begin(piece), length};
      }
    }
  });
  ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(first_bin));
}

// Pieces of one length may change places without changing how full any bin is.
// In epoch 0 each is where it was packed; in another, the permutation of its
// group is keyed by seed, epoch and group, so no plan is stored.
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
