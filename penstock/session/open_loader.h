#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/session/live_tuner.h"
#include "penstock/session/opening.h"
#include "penstock/session/progress_reporter.h"
#include "penstock/session/run_numbers.h"
#include "penstock/session/timeline.h"

namespace penstock {

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
  /// Waits until what next_into() has queued is written.
  void wait_into();
  /// The tensors of each batch, in their order.
  const std::vector<BatchTensor>& tensors();
  /// Waits at most so long for the next batch, the end or an error; false when
  /// none is there. True at once with 0 workers: next() does the work itself.
  bool ready_within(Nanoseconds time);
  /// Frees at least `bytes` of the device's memory that rows take, or all of
  /// it: they are kept on the host from here on, and batches go on in the same
  /// order, with the same bytes. Gives how many, 0 where the device keeps none
  /// or is the host. Batches that were handed out stay unchanged; who holds
  /// dataset(), or a loader of open_side(), holds the memory, too. Throws
  /// Error(out_of_memory) where the host has no room for them.
  std::size_t release_memory(std::size_t bytes);
  /// Keeps one batch ahead from here on, which frees the memory of the others.
  /// Batches go on in the same order, with the same bytes. Gives how many bytes
  /// of the device, 0 where no more than one was ahead.
  std::size_t drop_look_ahead();
  /// The batch that next() would give, made on this thread; it stays the next.
  std::optional<Batch> peek();
  /// Destroys a batch. This and the next three may be called on any thread,
  /// also for one batch on several: they use the streams one at a time.
  void release(Batch batch);
  /// The batch for several holders: the last one, on any thread, destroys it.
  std::shared_ptr<Batch> shared(Batch batch);
  /// Batch::wait_on(): `other` waits for the data, and the memory for `other`.
  void wait_on(Batch& batch, Stream& other);
  /// The same for a stream of another library (see Device::borrow_stream).
  void wait_on(Batch& batch, void* handle);

  /// A step that begins and ends here, and not at the calls of next().
  void begin_step();
  void end_step();
  /// The loop turns to something else, validation or a checkpoint: the step has
  /// ended, and time until the next call is left out. Waits for the steps.
  void pause();

  /// The steps run on a device that is not this one: from the next batch on
  /// they are what add_step() says, not what stream() sees. `gpu`: its place on
  /// the bus, if it is a GPU ("0000:41:00.0").
  void time_elsewhere(bool elsewhere, const std::string& gpu = {});
  void add_step(const StepParts& step, std::int64_t epoch);
  /// Times the steps. `total()` never waits; `pause()` leaves out the time
  /// until the next batch is asked for, once the step has ended.
  StepClock& clock() { return clock_; }
  /// From here on `listener` gets the progress of the loop, step by step, with
  /// what `row` says of its rate.
  void report_progress(TrainListener listener, std::int64_t epochs,
                       std::int64_t steps_left, const RowWork& row = {});
  /// Reports the step that has ended now, not at the next call of next().
  void report_step();
  /// From here on `listener` gets each point of the time line when it is over.
  /// Nothing where steps are not timed.
  void on_point(std::function<void(const TimelineNumbers::Point&)> listener);
  /// The newest loss that is known, for the progress and the time line.
  void set_loss(double loss);
  /// An epoch has ended with these numbers.
  void report_epoch(const EpochNumbers& epoch);

  /// Batches of a side, over the same rows on the same device, from its
  /// beginning: to validate with, say. Not timed, not part of report().
  /// `tail` missing: the job's. `most_samples`: see LoaderOptions. `rank`:
  /// whose rows of each batch; by default all of them.
  std::unique_ptr<Loader> open_side(Side side, std::optional<Tail> tail = {},
                                    std::int64_t most_samples = 0,
                                    const Rank& rank = {}) const;

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
  /// The position in at most 128 bytes of JSON; load_state() takes it, or the
  /// `state.json` of a run, and throws Error(request) when the data set or the
  /// order is another one. Ranks, workers, prefetch and tier may differ.
  Json state() const;
  void load_state(const Json& state);

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
  /// What the classes of a field stand for, by their numbers: a category's, of
  /// which null is the last where there is an unknown class, or the places of a
  /// multi_hot field. Throws Error(request), code fields.no_classes.
  std::vector<Json> classes(const std::string& field) const;
  /// The rows as they were opened, before any map(). From any thread; they may
  /// outlive close().
  std::shared_ptr<const Dataset> opened() const;
  const Loader& loader() const;

  /// What was counted up to now. A loop that validates or saves adds what that
  /// took and found.
  RunNumbers& counted() { return numbers_; }
  /// All numbers up to now. Waits for the steps, or leaves out those that have
  /// not ended.
  RunNumbers numbers(bool wait = true);
  const Job& job() const { return job_; }

  /// Ends the threads and lets the data set go. next() then throws
  /// Error(request); batches that were handed out stay unchanged.
  void close();
  bool closed() const { return loader_ == nullptr; }

 private:
  friend std::unique_ptr<Session> open_loader(const Job& job,
                                              const OpenOptions& options);
  Session(const Job& job, const OpenOptions& options);
  void check_open() const;
  /// A batch goes to the loop.
  void take(Position at, std::int64_t rows, std::int64_t rejected);
  /// Where `state` says, once it is known to be of these rows and this order.
  Position first_position();
  void check_state_of_run(const SavedState& state) const;
  LoaderOptions options_at(Position at) const;
  void continue_at(Position at);
  /// Lets the loader go, and opens another one.
  void end_loader();
  void open_at(Position at);
  void use_source(std::shared_ptr<const Dataset> source);
  void ask();
  std::shared_ptr<Stream> borrowed(void* handle)
      PENSTOCK_REQUIRES(stream_mutex_);
  Snapshot snapshot();
  static HostUse use_so_far();
  /// Lets the tuner look at the step that has ended.
  void tune();
  void count_epoch(std::int64_t at, std::int64_t rows);
  std::vector<StageNumbers> stages() const;
  std::vector<SampleId> samples_at(Position at) const;
  std::vector<WorstStep> worst_steps();

  const Job job_;
  OpenOptions options_;
  std::atomic<bool> closing_{false};
  RunNumbers numbers_;
  const HostUse used_before_ = use_so_far();
  std::shared_ptr<Device> device_;
  mutable Mutex source_mutex_;
  std::shared_ptr<const Dataset> source_  ///< as they were opened
      PENSTOCK_GUARDED_BY(source_mutex_);
  std::vector<RowFunction> maps_;        ///< of the rows, one after the other
  std::shared_ptr<const Dataset> rows_;  ///< mapped or not
  Order order_;
  mutable Mutex stream_mutex_;      ///< guards what is queued on the streams
  std::shared_ptr<Stream> stream_;  ///< batches keep earlier ones
  bool stream_is_borrowed_ = false;
  std::map<void*, std::weak_ptr<Stream>> borrowed_
      PENSTOCK_GUARDED_BY(stream_mutex_);
  StepClock clock_;
  bool asked_ = false, in_step_ = false, elsewhere_ = false;
  bool one_ahead_ = false;         ///< see drop_look_ahead()
  std::optional<Position> taken_;  ///< the batch of the step at hand
  const bool whole_job_;           ///< it ends with the job's last step
  std::int64_t steps_before_ = 0;  ///< that `OpenOptions::state` has behind it
  std::optional<double> loss_;
  TrainListener listener_;
  std::unique_ptr<ProgressReporter> reporter_;  ///< null: nobody listens
  std::unique_ptr<Timeline> timeline_;          ///< null: steps are not timed
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<LiveTuner> tuner_;  ///< null: nothing is to be tuned
  std::vector<StageNumbers> stages_;  ///< of the loaders before a seek
  Nanoseconds wait_order_{0};
};

/// The job's own batches, or those that `options` ask for. Reads and prepares
/// the data set, and compares it with that of the other ranks, before it
/// returns. Throws Error.
std::unique_ptr<Session> open_loader(const Job& job,
                                     const OpenOptions& options = {});

}  // namespace penstock
