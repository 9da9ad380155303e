#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/job/job.h"
#include "penstock/run/agreement.h"
#include "penstock/run/progress_reporter.h"
#include "penstock/run/report.h"

namespace penstock {

/// Makes rows on a loader's device. `stop` is set by OpenOptions::stop and by
/// Session::close().
using RowsMaker = std::function<std::shared_ptr<const Dataset>(
    const Job& job, Device& device, StopFlag stop)>;

/// How a job is opened, where that is not in its file.
struct OpenOptions {
  Side side = Side::train;
  Rank rank;
  /// Batches in all. Missing: the job's epochs and max_steps; -1: no end.
  std::optional<std::int64_t> batches;
  /// What happens between a batch and the next call is a step: it is measured
  /// for report(), and on `sim` it takes the device's step time.
  bool timed = false;
  /// Set by another thread to end the opening, or reading rows later, by an
  /// error. Loaders may share it; none of them sets it. May be missing.
  std::shared_ptr<std::atomic<bool>> stop;
  /// Rows of one's own. Missing: those of the job's source.
  RowsMaker rows;
  /// Lets the ranks compare what they have opened (see compare_ranks()), once
  /// per opening; not called where the opening was stopped. Missing, with
  /// several ranks of a job's source: the job must name `source.fingerprint`.
  Agree agree;
  /// The caller compares rank_facts() itself, after the opening.
  bool agrees_later = false;
};

/// A job's batches, ready on its device: the loader with all that it stands
/// on, for a loop of your own.
///
///     auto loader = penstock::open_loader(job);
///     while (std::optional<penstock::Batch> batch = loader->next())
///       my_step(batch->tensors(), loader->stream());
///
/// One thread at a time, where nothing else is said. Batches must be gone
/// before it is destroyed; they may outlive close().
class Session {
 public:
  ~Session();

  /// The next batch; work queued on stream() after this call sees its data.
  /// nullopt after the last one. Throws what reading and preparing throw.
  std::optional<Batch> next();
  /// The next batch, written into the caller's memory by work on stream(): see
  /// Loader::next_into().
  std::optional<FilledBatch> next_into(std::span<const TensorView> to);
  /// The tensors of each batch, in their order.
  const std::vector<BatchTensor>& tensors();
  /// Waits at most so long for the next batch, the end or an error; false when
  /// none is there. True at once with 0 workers: next() does the work itself.
  bool ready_within(Nanoseconds time);
  /// The batch that next() would give, made on this thread; it stays the next.
  std::optional<Batch> peek();
  /// Destroys a batch. This and the next two may be called on any thread, also
  /// for one batch on several: they use the streams one at a time.
  void release(Batch batch);
  /// Batch::wait_on(): `other` waits for the data, and the memory for `other`.
  void wait_on(Batch& batch, Stream& other);
  /// The same for a stream of another library (see Device::borrow_stream).
  void wait_on(Batch& batch, void* handle);

  /// A step that begins and ends here, and not at the calls of next().
  void begin_step();
  void end_step();
  /// The loop turns to something else, validation or a checkpoint: the step has
  /// ended, and time until the next call is left out. Waits for the steps.
  void rest();

  /// The steps run on a device that is not this one: from the next batch on
  /// they are what tell_step() says, not what stream() sees.
  void time_elsewhere(bool elsewhere) { elsewhere_ = elsewhere; }
  void tell_step(const StepParts& step, std::int64_t epoch);
  /// Sums over the steps that are known to have ended; never waits.
  const StepParts& parts() { return clock_.total(); }
  /// From here on `told` hears how the loop goes, as a run's listener does.
  void tell_progress(std::function<void(const Progress&)> told,
                     std::int64_t epochs, std::int64_t steps_left);

  /// Where the next batch begins; and what to do to make it begin elsewhere.
  /// Batches that were prepared ahead are let go, and are no error.
  Position position() const;
  /// Maps the rows from the next batch on; a function of maps maps the mapped.
  void map(RowFunction function);
  void seek(Position at);
  const Order& order() const { return order_; }
  std::int64_t steps_per_epoch() const {
    return penstock::steps_per_epoch(order_);
  }
  /// The position in at most 128 bytes of JSON; go_on() takes it, or the
  /// `state.json` of a run, and throws Error(request) when the data set or the
  /// order is another one. Ranks, workers, prefetch and tier may differ.
  Json state() const;
  void go_on(const Json& state);

  /// What must be the same on all ranks: the facts of compare_ranks().
  Json rank_facts() const;

  /// Valid until use_stream() is given another one.
  Stream& stream() { return *stream_; }
  /// Uses a stream of another library from the next batch on (see
  /// Device::borrow_stream).
  void use_stream(void* handle);
  Device& device() { return *device_; }
  /// What batches are made of.
  const Dataset& rows() const;
  /// The rows of the job's source, which may outlive close(); null for rows of
  /// one's own. From any thread.
  std::shared_ptr<const TableDataset> dataset() const;
  const Loader& loader() const;

  /// The numbers up to now as in a run's `report.json`, of the last epochs
  /// alone. Waits for the steps, or leaves out those that have not ended.
  Json report(bool wait = true);
  static constexpr std::size_t kEpochsTold = 1000;

  /// Ends the threads and lets the data set go. next() then throws
  /// Error(request); batches that were handed out stay as they are.
  void close();
  bool closed() const { return loader_ == nullptr; }

 private:
  friend std::unique_ptr<Session> open_loader(const Job& job,
                                              const OpenOptions& options);
  Session(const Job& job, const OpenOptions& options);
  void check_open() const;
  /// A batch goes to the loop.
  void take(Position at, std::int64_t rows);
  std::shared_ptr<const Dataset> source() const;
  LoaderOptions options_at(Position at) const;
  void ask();
  std::shared_ptr<Stream> borrowed(void* handle)
      PENSTOCK_REQUIRES(stream_mutex_);
  void count_epoch(std::int64_t at, std::int64_t rows);
  std::vector<StageNumbers> stages() const;

  const Job job_;
  OpenOptions options_;
  std::atomic<bool> closing_{false};
  RunNumbers numbers_;
  std::unique_ptr<Device> device_;
  mutable Mutex source_mutex_;
  std::shared_ptr<const Dataset> source_  ///< as they were opened
      PENSTOCK_GUARDED_BY(source_mutex_);
  std::shared_ptr<const Dataset> rows_;  ///< mapped or not
  Order order_;
  mutable Mutex stream_mutex_;      ///< guards what is queued on the streams
  std::shared_ptr<Stream> stream_;  ///< batches keep earlier ones
  bool stream_is_borrowed_ = false;
  std::map<void*, std::weak_ptr<Stream>> borrowed_
      PENSTOCK_GUARDED_BY(stream_mutex_);
  StepClock clock_;
  bool asked_ = false, in_step_ = false, elsewhere_ = false;
  std::optional<Position> taken_;  ///< the batch of the step at hand
  TrainListener listener_;
  std::unique_ptr<ProgressReporter> teller_;  ///< null: nobody listens
  std::unique_ptr<Loader> loader_;
  std::vector<StageNumbers> stages_;  ///< of the loaders before a seek
  Nanoseconds wait_order_{0};
};

/// The job's own batches, or those that `options` ask for. Reads and prepares
/// the data set, and compares it with that of the other ranks, before it
/// returns. Throws Error.
std::unique_ptr<Session> open_loader(const Job& job,
                                     const OpenOptions& options = {});

}  // namespace penstock
