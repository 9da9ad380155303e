#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "python/engine/batch.h"
#include "python/engine/open.h"

namespace penstock::python {

/// A loader for Python: lets other threads of Python run while it waits,
/// handles Ctrl-C meanwhile, and refuses to work in a forked process. Calls of
/// several threads take turns.
class Engine {
 public:
  /// Reads and prepares the data set. Throws Error.
  explicit Engine(const OpenRequest& opening);
  ~Engine();

  /// Makes all iterations that were begun before end by an error, and returns
  /// the number of the new one. Where an epoch was left in the middle, the next
  /// one begins, but for a position that came from a saved state.
  std::int64_t begin_epoch();
  /// The same, from wherever the last iteration stopped.
  std::int64_t begin_here();
  /// Steps that are left of the epoch at hand.
  std::int64_t steps_left();
  /// The next batch of that iteration. Throws Error, or nb::python_error when a
  /// signal's handler raised while it waited.
  NamedBatch next(std::int64_t iteration);
  /// The same, written into `to`, the tensors of a batch in their order.
  FilledBatch next_into(std::int64_t iteration, std::span<const TensorView> to);
  /// The names of a batch's tensors, in their order.
  std::vector<std::string> tensor_names();
  /// The same of those that the data set makes: without the weights that the
  /// loader adds.
  std::vector<std::string> row_names();
  NamedBatch peek();

  /// Maps the rows from the next batch on, by a function that `rows` calls.
  void map(std::shared_ptr<Function> function, RowFunction rows);
  std::int64_t seed() const { return seed_; }

  void set_epoch(std::int64_t epoch);
  std::int64_t steps_per_epoch();
  std::string state();
  void load_state(const std::string& state);
  /// The batch was not received: it becomes the next again. False where it is
  /// not the one that was handed out last, which other threads have taken.
  bool put_back(Position batch);
  /// That iteration is at its end, and the loop turns to something else.
  void pause(std::int64_t iteration);
  std::string report(bool wait);
  std::size_t release_memory(std::size_t bytes);
  /// What must be the same on all ranks.
  std::string rank_facts();
  /// What a run's statistics.json holds; null for rows of the caller.
  Json statistics();
  /// As Session::classes() has it.
  Json classes(const std::string& field);

  /// Steps by the device's own stream, or as the caller has measured them.
  void begin_step();
  void end_step();
  void time_elsewhere(bool elsewhere, const std::string& gpu);
  void add_step(std::int64_t epoch, std::int64_t rows, std::int64_t wall,
                std::int64_t compute, std::int64_t wait_data, bool drained);
  /// "cpu", "sim" or "cuda".
  const std::string& device() const { return device_; }

  /// From here on line() says how the loop goes; `epochs` 0: without end.
  void begin_line(std::int64_t epochs, std::int64_t steps);
  /// `columns`: the width of a terminal, with a bar; 0: no limit, no bar.
  std::string line(int columns);
  std::string shares();
  void close();
  bool closed();

  /// For Python's garbage collector. A loader that it finds is ended on another
  /// thread, because the collector strikes anywhere: the thread that it struck
  /// may be one of the loader's own, or hold what a function waits for. And
  /// before anything of the garbage is cleared, because functions may be
  /// running; they hold what they need until they have come back.
  int visit(visitproc visit, void* arg) const;
  void before_it_is_garbage();

 private:
  explicit Engine(std::shared_ptr<Session> loader);
  /// Runs `work` on the loader, by one thread at a time.
  template <class Work>
  auto with_loader(Work work);
  /// Calls `take` with the loader once the next batch of an iteration is there.
  template <class Take>
  void wait_and(std::int64_t iteration, Take take);
  std::int64_t upcoming_epoch() const;
  void follow_torch();
  std::shared_ptr<BatchHandle> held(Batch batch) const;
  std::future<void> end_elsewhere();
  void release_functions();

  struct Left;

  ForkGuard fork_;
  std::mutex mutex_;  ///< taken without Python's lock, never the other way
  std::atomic<std::thread::id> inside_{};  ///< the thread that holds it
  std::shared_ptr<Session> loader_;        ///< null once it is ended elsewhere
  /// All that the loader calls. Changed and read with Python's lock.
  std::vector<std::shared_ptr<Function>> functions_;
  /// Made beforehand: at its end there may be no memory, and no way to say so.
  std::shared_ptr<Left> left_;
  std::int64_t iteration_ = 0;
  bool resumed_ = false;  ///< the position is a saved one
  std::int64_t seed_ = 0;
  std::string device_;
  std::optional<int> gpu_;         ///< its number, where batches are on one
  std::optional<Progress> shown_;  // none: no step yet
};

void bind_engine(nb::module_& module);

}  // namespace penstock::python
