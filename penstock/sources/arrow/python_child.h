#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/sources/memory/arrow_data.h"

namespace penstock::arrow_files {

/// A process of Python that runs `penstock._rows.arrow_child`: its pyarrow
/// reads files for this program. One thread's.
///
/// A request is a line of JSON. An answer is a JSON object behind its size, and
/// perhaps bytes: an Arrow IPC stream, or those of a stored file. The process
/// ends when this object does, or this program; it is killed and reported when
/// it neither answers nor computes for `silence`.
class PythonChild {
 public:
  /// Starts `python`, which is looked for along PATH, and waits for what it
  /// says of itself: its own version and that of pyarrow. Throws Error(source):
  /// source.part_missing where it cannot be used, source.pyarrow where it ends
  /// or is silent.
  explicit PythonChild(std::string python, std::chrono::milliseconds silence =
                                               std::chrono::seconds(60));
  ~PythonChild();
  PythonChild(const PythonChild&) = delete;
  PythonChild& operator=(const PythonChild&) = delete;

  void send(const Json& request);
  /// The next answer. Throws ScanFailure for what pyarrow refuses, and
  /// Error(source), source.pyarrow.
  Json answer();
  /// Bytes behind an answer.
  void read(void* to, std::size_t size);
  /// An Arrow IPC stream behind an answer.
  std::shared_ptr<const ArrowTable> read_rows();

  const std::string& python() const { return python_; }
  /// "20.0.0".
  const std::string& pyarrow() const { return pyarrow_; }
  pid_t number() const { return process_; }

 private:
  void start();
  void greet();
  void end();
  bool wait_for_bytes() const;
  [[noreturn]] void refuse(std::string why, std::string next) const;
  [[noreturn]] void ended();
  std::string last_words() const;

  const std::string python_;
  const std::chrono::milliseconds silence_;
  std::string pyarrow_;
  pid_t process_ = 0;
  int to_ = -1, from_ = -1, errors_ = -1;
};

/// The processes that are started, one for each thread that reads at the same
/// time. Thread-safe.
class PythonChildren {
 public:
  /// One that is used for a while, by one thread alone.
  class Lease {
   public:
    Lease(PythonChildren& of, std::unique_ptr<PythonChild> child)
        : of_(&of), child_(std::move(child)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = default;
    PythonChild* operator->() const { return child_.get(); }
    /// Everything that it was asked is answered: another one may use it. One
    /// that is not given back is ended.
    void give_back() { of_->idle(std::move(child_)); }

   private:
    PythonChildren* of_;
    std::unique_ptr<PythonChild> child_;
  };

  /// Throws as PythonChild does.
  Lease take();

 private:
  void idle(std::unique_ptr<PythonChild> child);
  std::unique_ptr<PythonChild> find();

  std::mutex mutex_;
  std::string python_;  // that was found; empty: none yet
  std::vector<std::unique_ptr<PythonChild>> idle_;
};

/// The Pythons that are tried, in order: the one that PENSTOCK_PYTHON names, or
/// each python3 along PATH.
std::vector<std::string> pythons_to_try();

}  // namespace penstock::arrow_files
