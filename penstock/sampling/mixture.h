#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// When an epoch over several sources ends.
enum class Exhausted : std::uint8_t {
  stop,    ///< before a source would have to begin again
  repeat,  ///< once each source was used up; others begin again until then
};

/// One of the sources that are mixed: the samples of it on a side, and how
/// often it comes, in proportion to the others' weights.
struct MixtureShare {
  std::int64_t samples = 0;
  double weight = 1;
};

/// Where a sample of a mixture comes from: the `at`-th of its source, which is
/// gone through for the `pass`-th time.
struct MixturePlace {
  std::size_t source = 0;
  std::int64_t pass = 0;
  std::int64_t at = 0;
};

/// Which source each position of an epoch takes its sample from, and which
/// sample: a pure function of (seed, epoch, position). Immutable, so
/// thread-safe.
///
/// An epoch takes as many samples of each source as its weight promises, by
/// largest remainder, and so does every stretch of it, within one: the sources
/// are interleaved evenly, and then, in an order that is shuffled, the
/// positions of each block of kBlock by a keyed permutation. A source is gone
/// through from its beginning to its end, and begins again only then, from one
/// epoch to the next: what an epoch leaves comes in the next one.
class Mixture {
 public:
  static constexpr std::int64_t kBlock = 4096;  ///< positions
  /// Weights are multiples of 2^-32 of the largest; smaller ones count as that.
  static constexpr double kLeastWeight = 1e-6, kMostWeight = 1e6;

  /// Each source has at least one sample, and a weight between these two.
  /// Throws Error(request), code sampling.mixture, for an epoch of more than
  /// 2^48 samples.
  Mixture(std::vector<MixtureShare> shares, Exhausted exhausted);

  std::size_t sources() const { return shares_.size(); }
  const std::vector<MixtureShare>& shares() const { return shares_; }
  Exhausted exhausted() const { return exhausted_; }
  /// Positions in an epoch; and how many of them are of each source.
  std::int64_t epoch_samples() const { return epoch_samples_; }
  const std::vector<std::int64_t>& taken() const { return taken_; }
  /// The number of a source's first sample where those of all stand one after
  /// the other; of sources(): how many there are.
  std::int64_t first_of(std::size_t source) const { return firsts_[source]; }

  /// What stands at the positions first, first + 1, ... of an epoch.
  void places(std::uint64_t seed, bool shuffle, std::int64_t epoch,
              std::int64_t first, std::span<MixturePlace> places) const;

 private:
  using Counts = std::vector<std::int64_t>;
  Counts counts_in(std::int64_t samples) const;
  bool exceeds(const Counts& counts) const;
  bool covers(const Counts& counts) const;
  void find_epoch();
  bool before(std::size_t a, std::int64_t of_a, std::size_t b,
              std::int64_t of_b) const;
  std::size_t next_source(const Counts& counts) const;
  std::size_t last_source(const Counts& counts) const;
  Counts counts_before(std::int64_t position) const;
  MixturePlace place(std::int64_t epoch, std::size_t source,
                     std::int64_t number) const;

  const std::vector<MixtureShare> shares_;
  const Exhausted exhausted_;
  std::vector<std::uint64_t> weights_;  // whole numbers
  std::uint64_t all_weights_ = 0;
  std::int64_t epoch_samples_ = 0;
  Counts taken_;
  Counts firsts_;
};

/// The seed of what is random within a source of a mixture: another one than
/// the mixture's and than those of other sources.
std::uint64_t seed_of_source(std::uint64_t seed, std::size_t source);

}  // namespace penstock
