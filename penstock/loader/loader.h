#pragma once

/// Assembles the rooms below into "next batch, ready on the device".

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/batch.h"

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
  Tail tail = Tail::drop;
  std::int64_t batch_size = 256;  ///< global: over all ranks
  Rank rank;
  /// Threads that fill batches; 0: all on the caller's thread, when asked.
  int workers = 1;
  /// Batches ready ahead, in total. 0: none, each is filled on the caller's
  /// thread when asked for, as with 0 workers.
  int prefetch = 2;
  /// One statement per row, as a comparison: what a query per sample costs.
  bool per_sample = false;
  OnBad on_bad = OnBad::stop;
  /// The largest batch that is made, in bytes; 0: as large as they come. Only
  /// samples that differ in length can exceed it.
  std::size_t batch_bytes = 0;
  Position start;
  std::int64_t batches = -1;  ///< ends after this many; -1: never
};

/// The order that these options mean for `rows`.
Order order_of(const LoaderOptions& options, const Dataset& rows);

/// The bytes that a loader's ring of slots takes at most: on the device, and
/// again as much pinned on the host where batches are copied. `rows` is how
/// many there are on the loader's side, or more: a batch that is not padded has
/// no more. `longest` as DatasetInfo has it.
std::size_t ring_bytes(const LoaderOptions& options,
                       const std::vector<Output>& outputs, std::int64_t rows,
                       std::span<const std::int32_t> longest = {});

/// Throws the Error(transform) of a bad sample.
[[noreturn]] void refuse_bad_sample(const RejectedSample& bad, Position at);

/// A batch that is in the caller's memory.
struct FilledBatch {
  Position at;
  std::int64_t rows = 0;  ///< the first rows of each tensor
  std::vector<SampleId> ids;
  std::vector<RejectedSample> rejected;
};

/// Hands out batches of samples in order, epoch after epoch, prepared
/// ahead across the seam between epochs.
///
/// One consumer thread. The bytes of a batch depend on the rows, seed,
/// position, batch size and rank alone, never on workers, prefetch or tier.
/// Batches may outlive the loader, and keep the rows alive; they must not
/// outlive the device. A consumer that holds
/// all slots gets one more, and the log a warning.
class Loader {
 public:
  /// Throws Error(request) for a side without rows, with Tail::drop for one
  /// with fewer rows than a batch, for rows that have a tensor named as the
  /// weights are where these are added (Tail::pad, OnBad::mask), and for
  /// OnBad::substitute where samples differ in length.
  Loader(std::shared_ptr<const Dataset> rows, const LoaderOptions& options,
         Device& device);
  ~Loader();

  /// The next batch, whose data may still be on its way: call wait_on().
  /// nullopt after `options.batches`, and never before. A batch that could not
  /// be made throws in its turn, after all before it, and so does every later
  /// call; so does any other error of a worker, after the batches that could
  /// still be completed.
  std::optional<Batch> next();
  /// The next batch, written into the caller's memory, at the same addresses
  /// each time: for CUDA graphs, and for loops that own their buffers. `to` has
  /// the batch's tensors in their order, with room for at least its rows, on
  /// the device or on the host; the copies are queued on `stream`. With 0
  /// workers, on a device that is the host, nothing is copied: rows go straight
  /// there. Throws Error(request), code loader.next_into, for tensors that do
  /// not fit, before a batch is taken.
  std::optional<FilledBatch> next_into(std::span<const TensorView> to,
                                       Stream& stream);
  /// The same, and `stream` already waits for it.
  std::optional<Batch> next(Stream& stream);

  /// Waits at most so long for the next batch, the end or an error; false when
  /// none is there. True at once with 0 workers: next() does the work itself.
  bool ready_within(Nanoseconds time);

  /// Where the batch after the last one handed out begins: to be saved.
  Position position() const;
  std::int64_t steps_per_epoch() const;
  /// The tensors of each batch, in their order.
  const std::vector<BatchTensor>& tensors() const;
  std::vector<StageNumbers> stages() const;
  /// Part of the waiting in which later batches were already complete.
  Nanoseconds wait_order() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
