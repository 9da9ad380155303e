#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/dataset/dataset.h"

namespace penstock {

/// What is done about a sample that cannot be used, once the data set is there.
/// The outcome depends on the data, the seed and the epoch alone.
enum class OnBad : std::uint8_t {
  stop,        ///< an error, in the batch's turn
  substitute,  ///< another sample of the side, drawn for it
  mask,        ///< its row is zeros, and 0 in the tensor `weight`
};

/// How batches are made of samples.
struct LoaderOptions {
  Side side = Side::train;
  std::uint64_t seed = 0;
  bool shuffle = true;
  Pages pages = {};  ///< in which it is shuffled; none: one exact shuffle
  /// Batches of samples of about equal length; of the train side.
  LengthGroups::How group_by_length = LengthGroups::How::none;
  Tail tail = Tail::drop;
  std::int64_t batch_size = 256;  ///< global: over all ranks
  Rank rank;
  /// Threads that fill batches; 0: all on the caller's thread, when asked.
  int workers = 1;
  /// Batches ready ahead, in total. 0: none, each is filled on the caller's
  /// thread when asked for, as with 0 workers.
  int prefetch = 2;
  /// Reads from the source that are in flight at once, where rows are not kept:
  /// I/O threads apart from the workers, each with a reader of its own. 0: the
  /// workers read, as the caller's thread does with 0 workers. Where the source
  /// is far away, raise it together with `prefetch`: see parts_of_batch().
  int readers = 4;
  /// One statement per row, as a comparison: what a query per sample costs.
  bool per_sample = false;
  OnBad on_bad = OnBad::stop;
  /// The largest batch that is made, in bytes; 0: as large as they come. Only
  /// samples that differ in length can exceed it.
  std::size_t batch_bytes = 0;
  /// What reports call the stages that work on fields.
  StageNames stage_names;
  /// What is done to whole batches, one after the other.
  std::vector<Operation> operations;
  Position start;
  /// Of a side that is not shuffled: at most so many of its samples, chosen by
  /// the seed, the same in every epoch; 0: all.
  std::int64_t most_samples = 0;
  std::int64_t batches = -1;  ///< ends after this many; -1: never
};

/// The order that these options mean for `rows`.
Order order_of(const LoaderOptions& options, const Dataset& rows);
/// The same for so many rows on that side.
Order order_of(const LoaderOptions& options, std::int64_t rows);

/// Rows in a batch of these options, where there are `rows` rows: at most.
std::int64_t most_rows(const LoaderOptions& options, std::int64_t rows);
/// Slots in the ring: one in the consumer's hands, one on its way back, the
/// rest ahead.
int slots_of(const LoaderOptions& options);
/// The options with their defaults resolved.
LoaderOptions resolved(LoaderOptions options);
/// True where a batch says which rows count.
bool weighted(const LoaderOptions& options);
/// Throws Error(request) for what cannot be done with these samples.
void check(const LoaderOptions& options, const Dataset& dataset);

/// What may change while a loader runs: see LoaderOptions.
struct LoaderThreads {
  int workers = 1;
  int readers = 0;  ///< 0: none, the workers read
  int prefetch = 2;

  friend bool operator==(const LoaderThreads&, const LoaderThreads&) = default;
};

/// Parts of batches that the batches ahead hold, for each thread: those of a
/// batch come back one by one, and other batches are ready or being prepared.
inline constexpr int kPartsEach = 2;

/// In how many parts a batch is read and prepared, if it has rows enough: one
/// for each reader or worker, whichever are more (M). Where rows are read
/// ahead, fewer if so many batches ahead hold kPartsEach for each all the same:
/// kPartsEach * M / prefetch, rounded, at least 1. A source that is far away
/// takes as long for a part as for a batch.
int parts_of_batch(const LoaderThreads& threads);

}  // namespace penstock
