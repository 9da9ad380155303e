#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/frontends/python/batch.h"
#include "penstock/frontends/python/rows.h"

namespace penstock::python {

/// What a loader is opened with. Texts of JSON, because settings are checked by
/// the same code as a job file's.
struct Opening {
  std::string job;                ///< the document
  std::vector<std::string> sets;  ///< "section.key=value"
  std::string side = "train";     ///< or "val"
  int rank = 0;
  int world = 1;
  RowsMaker rows;  ///< in place of a source and fields; may be empty
};

/// A loader for Python: lets other threads of Python run while it waits, hears
/// Ctrl-C meanwhile, and refuses to work in a forked process. Calls of several
/// threads take turns.
class Engine {
 public:
  /// Reads and prepares the data set. Throws Error.
  explicit Engine(const Opening& opening);
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
  NamedBatch peek();

  /// Maps the rows from the next batch on.
  void map(RowFunction function);
  std::int64_t seed() const { return seed_; }

  void set_epoch(std::int64_t epoch);
  std::int64_t steps_per_epoch();
  std::string state();
  void go_on(const std::string& state);
  /// The batch was not received: it becomes the next again.
  void put_back(const NamedBatch& batch);
  /// That iteration is at its end, and the loop turns to something else.
  void rest(std::int64_t iteration);
  std::string report(bool wait);

  /// Steps by the device's own stream, or told by somebody who measures them.
  void begin_step();
  void end_step();
  void time_elsewhere(bool elsewhere);
  void tell_step(std::int64_t epoch, std::int64_t wall, std::int64_t compute,
                 std::int64_t wait_data);
  /// "cpu", "sim" or "cuda".
  const std::string& device() const { return device_; }

  /// From here on line() says how the loop goes; `epochs` 0: without end.
  void begin_line(std::int64_t epochs, std::int64_t steps);
  std::string line();
  std::string shares();
  void close();
  bool closed();

 private:
  /// Runs `work` on the loader, by one thread at a time.
  template <class Work>
  auto with_loader(Work work);
  std::int64_t upcoming_epoch() const;
  void follow_torch();

  ForkGuard fork_;
  std::mutex mutex_;  ///< taken without Python's lock, never the other way
  std::atomic<std::thread::id> inside_{};  ///< the thread that holds it
  std::shared_ptr<JobLoader> loader_;
  std::int64_t iteration_ = 0;
  bool resumed_ = false;  ///< the position is a saved one
  std::int64_t seed_ = 0;
  std::string device_;
  std::string line_;
};

void bind_engine(nb::module_& module);

}  // namespace penstock::python
