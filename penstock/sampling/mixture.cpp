#include "penstock/sampling/mixture.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/random.h"
#include "penstock/sampling/permutation.h"

// An epoch is a merge: sample j of the c that it takes of a source stands at
// the time (2j + 1) / 2c, so that each source comes as evenly as may be, and of
// two at the same time the first source comes first. How many samples each
// source has before a position follows from the time of that position, and is
// put right by a few steps of the merge. All of it is arithmetic of integers.

namespace penstock {
namespace {

using Wide = unsigned __int128;

// Keeps these numbers apart from all others under the same seed.
constexpr std::uint64_t kMix = 0x6d6978;           // "mix"
constexpr std::uint64_t kSource = 0x736f75726365;  // "source"

constexpr double kUnit = 0x1p32;
/// A length that follows from weights is known so well: 2^-kKnown of it.
constexpr int kKnown = 30;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 48;

[[noreturn]] void refuse_length() {
  throw Error(
      ErrorKind::request,
      {.code = "sampling.mixture",
       .what = "cannot mix these sources",
       .where = "sources",
       .why = "an epoch that uses up all sources has more than 2^48 samples",
       .next = "choose weights that differ less, or set \"loader.exhausted\" "
               "to \"stop\""});
}

}  // namespace

Mixture::Mixture(std::vector<MixtureShare> shares, Exhausted exhausted)
    : shares_(std::move(shares)), exhausted_(exhausted) {
  double largest = 0;
  for (const MixtureShare& share : shares_)
    largest = std::max(largest, share.weight);
  firsts_.push_back(0);
  for (const MixtureShare& share : shares_) {
    PENSTOCK_ASSERT(share.samples > 0 && share.weight > 0,
                    "a source of a mixture has samples and a weight");
    weights_.push_back(std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(
               std::llround(share.weight / largest * kUnit))));
    all_weights_ += weights_.back();
    firsts_.push_back(firsts_.back() + share.samples);
  }
  find_epoch();
}

/// Of so many samples, by largest remainder; of equal ones the first is larger.
Mixture::Counts Mixture::counts_in(std::int64_t samples) const {
  Counts counts;
  std::vector<std::pair<std::uint64_t, std::size_t>> remainders;
  std::int64_t left = samples;
  for (std::size_t s = 0; s < sources(); ++s) {
    const Wide share = static_cast<Wide>(samples) * weights_[s];
    counts.push_back(static_cast<std::int64_t>(share / all_weights_));
    left -= counts.back();
    remainders.emplace_back(static_cast<std::uint64_t>(share % all_weights_),
                            s);
  }
  std::ranges::stable_sort(remainders, std::greater<>(),
                           [](const auto& one) { return one.first; });
  for (std::size_t i = 0; left > 0; ++i, --left) ++counts[remainders[i].second];
  return counts;
}

bool Mixture::exceeds(const Counts& counts) const {
  for (std::size_t s = 0; s < counts.size(); ++s)
    if (counts[s] > shares_[s].samples) return true;
  return false;
}

bool Mixture::covers(const Counts& counts) const {
  for (std::size_t s = 0; s < counts.size(); ++s)
    if (counts[s] < shares_[s].samples) return false;
  return true;
}

// A source of n samples is used up after n * (sum of weights) / (its weight) of
// all. Weights are rounded, so that this is rounded to what it would be without
// that, and then put right.
void Mixture::find_epoch() {
  const bool stop = exhausted_ == Exhausted::stop;
  for (std::size_t s = 0; s < sources(); ++s) {
    const Wide all = static_cast<Wide>(shares_[s].samples) * all_weights_;
    const Wide unknown = all >> kKnown;
    const Wide samples = stop ? (all + unknown) / weights_[s]
                              : (all - unknown + weights_[s] - 1) / weights_[s];
    if (!stop && samples > static_cast<Wide>(kMostSamples)) refuse_length();
    const auto length = static_cast<std::int64_t>(
        std::min(samples, static_cast<Wide>(kMostSamples)));
    if (s == 0)
      epoch_samples_ = length;
    else
      epoch_samples_ = stop ? std::min(epoch_samples_, length)
                            : std::max(epoch_samples_, length);
  }
  taken_ = counts_in(epoch_samples_);
  while (stop ? exceeds(taken_) : !covers(taken_))
    taken_ = counts_in(stop ? --epoch_samples_ : ++epoch_samples_);
}

/// Sample `of_a` of source a stands before sample `of_b` of source b.
/// (2 of_a + 1) / 2 c_a < (2 of_b + 1) / 2 c_b, multiplied out so that it is
/// exact; c are the counts of both in the epoch.
bool Mixture::before(std::size_t a, std::int64_t of_a, std::size_t b,
                     std::int64_t of_b) const {
  const Wide left =
      static_cast<Wide>(2 * of_a + 1) * static_cast<Wide>(taken_[b]);
  const Wide right =
      static_cast<Wide>(2 * of_b + 1) * static_cast<Wide>(taken_[a]);
  return left != right ? left < right : a < b;
}

/// The source of the sample that comes after these.
std::size_t Mixture::next_source(const Counts& counts) const {
  std::size_t next = sources();
  for (std::size_t s = 0; s < sources(); ++s)
    if (counts[s] < taken_[s] &&
        (next == sources() || before(s, counts[s], next, counts[next])))
      next = s;
  return next;
}

/// The source of the last one of these.
std::size_t Mixture::last_source(const Counts& counts) const {
  std::size_t last = sources();
  for (std::size_t s = 0; s < sources(); ++s)
    if (counts[s] > 0 &&
        (last == sources() || before(last, counts[last] - 1, s, counts[s] - 1)))
      last = s;
  return last;
}

// With n samples in the epoch, c of a source, and the time p / n, its samples
// with (2j + 1) / 2c < p / n number floor((2 c p + n) / 2n), or one less at
// equality. That is within a half of c p / n, and these add up to p, so the sum
// is off by at most half the number of sources, and as many steps of the merge
// put it right.
Mixture::Counts Mixture::counts_before(std::int64_t position) const {
  Counts counts;
  std::int64_t missing = position;
  const Wide twice = 2 * static_cast<Wide>(epoch_samples_);
  for (std::size_t s = 0; s < sources(); ++s) {
    const Wide until =
        2 * static_cast<Wide>(taken_[s]) * static_cast<Wide>(position) +
        static_cast<Wide>(epoch_samples_);
    counts.push_back(
        std::min(taken_[s], static_cast<std::int64_t>(until / twice)));
    missing -= counts.back();
  }
  for (; missing > 0; --missing) ++counts[next_source(counts)];
  for (; missing < 0; ++missing) --counts[last_source(counts)];
  return counts;
}

MixturePlace Mixture::place(std::int64_t epoch, std::size_t source,
                            std::int64_t number) const {
  const Wide walked =
      static_cast<Wide>(epoch) * static_cast<Wide>(taken_[source]) +
      static_cast<Wide>(number);
  const auto samples = static_cast<Wide>(shares_[source].samples);
  return {.source = source,
          .pass = static_cast<std::int64_t>(walked / samples),
          .at = static_cast<std::int64_t>(walked % samples)};
}

void Mixture::places(std::uint64_t seed, bool shuffle, std::int64_t epoch,
                     std::int64_t first, std::span<MixturePlace> places) const {
  if (!shuffle) {
    Counts counts = counts_before(first);
    for (MixturePlace& to : places) {
      const std::size_t source = next_source(counts);
      to = place(epoch, source, counts[source]++);
    }
    return;
  }
  while (!places.empty()) {
    const std::int64_t block = first / kBlock, begin = block * kBlock;
    const std::int64_t size = std::min(kBlock, epoch_samples_ - begin);
    const auto count = std::min<std::size_t>(
        places.size(), static_cast<std::size_t>(begin + size - first));
    const Counts from = counts_before(begin),
                 until = counts_before(begin + size);
    Random random(seed, static_cast<std::uint64_t>(epoch),
                  static_cast<std::uint64_t>(block), kMix);
    const Permutation shuffled(size, random.next());
    std::vector<std::int64_t> numbers(count);
    shuffled.range(first - begin, numbers);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t number = numbers[i];
      std::size_t source = 0;
      for (; number >= until[source] - from[source]; ++source)
        number -= until[source] - from[source];
      places[i] = place(epoch, source, from[source] + number);
    }
    first += static_cast<std::int64_t>(count);
    places = places.subspan(count);
  }
}

std::uint64_t seed_of_source(std::uint64_t seed, std::size_t source) {
  return Random(seed, 0, source, kSource).next();
}

}  // namespace penstock
