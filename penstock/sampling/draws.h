#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/sample.h"

namespace penstock {

/// How the rows of the train side are drawn, with replacement: a row with a
/// probability in proportion to the number in `column`, or, to `balance`, each
/// value of `column` equally often. No column: each row comes once an epoch.
struct Drawing {
  std::string column;
  bool balance = false;

  explicit operator bool() const { return !column.empty(); }
};

/// Samples drawn with replacement, each with a probability in proportion to its
/// weight: the alias method (Walker 1977; Vose 1991) in whole numbers, so that
/// every machine draws the same. A draw depends on (seed, epoch, position)
/// alone. Probabilities are multiples of 2^-32 / samples: a weight of 0 is
/// never drawn, any other may be. 8 bytes a sample. Immutable, so thread-safe.
class Draws {
 public:
  /// `weights` of the samples 0, 1, ... of a side: finite and not negative.
  /// Throws Error(request), code sampling.weights, where all are zero, and for
  /// 2^31 samples or more.
  explicit Draws(std::span<const double> weights);

  std::int64_t samples() const {
    return static_cast<std::int64_t>(cells_.size());
  }
  /// Those at the positions first, first + 1, ... of an epoch.
  void draw(std::uint64_t seed, std::int64_t epoch, std::int64_t first,
            std::span<SampleRange> drawn) const;
  /// Of the probabilities: differs where they do.
  std::uint64_t digest() const { return digest_; }

 private:
  /// One cell a sample, all equally probable: the sample itself for `share` of
  /// 2^32, else the other one.
  struct Cell {
    std::uint32_t share, other;
  };
  std::vector<Cell> cells_;
  std::uint64_t digest_ = 0;
};

/// What is drawn where each row has the value that follows from `drawing`: the
/// bits of its weight, a float64, or a hash of its value.
std::shared_ptr<const Draws> draws_of(const Drawing& drawing,
                                      std::vector<std::uint64_t> values);

}  // namespace penstock
