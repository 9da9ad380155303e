#pragma once

/// "The next batch, ready on the device": plans ahead, fills slots on several
/// threads, and hands out batches in order.
///
///     Loader loader(rows, {.batch_size = 64, .workers = 2, .batches = 1000},
///                   device);
///     while (std::optional<Batch> batch = loader.next(stream))
///       stream.step(static_cast<std::uint64_t>(batch->at().step));

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/dataset/dataset.h"
#include "penstock/loader/batch.h"
#include "penstock/loader/batch_operations.h"
#include "penstock/loader/options.h"
#include "penstock/loader/ring_bytes.h"

namespace penstock {

struct LoaderState;

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
  /// `streams`, where given, is held while work is queued on `stream`, and not
  /// while it waits for the batch.
  std::optional<FilledBatch> next_into(std::span<const TensorView> to,
                                       Stream& stream,
                                       Mutex* streams = nullptr);
  /// The same, and `stream` already waits for it.
  std::optional<Batch> next(Stream& stream);

  /// Waits at most so long for the next batch, the end or an error; false when
  /// none is there. True at once with 0 workers: next() does the work itself.
  bool ready_within(Nanoseconds time);

  /// As they are set; nullopt where batches are made on the consumer's thread.
  std::optional<LoaderThreads> threads() const;
  /// From here on; batches and their order stay the same. Threads that are too
  /// many finish what they are at. Memory of batches that may no longer lie
  /// ready is kept. Only where threads() are, with one or more of each of them;
  /// called by the consumer. There are fewer where the system refuses a thread.
  /// Throws Error(out_of_memory) where there is no memory for more batches that
  /// lie ready: then nothing has changed.
  void set_threads(const LoaderThreads& to);

  /// Where the batch after the last one handed out begins: to be saved.
  Position position() const;
  std::int64_t steps_per_epoch() const;
  /// The tensors of each batch, in their order.
  const std::vector<BatchTensor>& tensors() const;
  std::vector<StageNumbers> stages() const;
  /// Part of the waiting in which later batches were already complete.
  Nanoseconds wait_order() const;

 private:
  std::unique_ptr<LoaderState> state_;
};

}  // namespace penstock
