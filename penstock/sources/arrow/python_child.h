#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
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

/// The Pythons that are tried, in order: the one that PENSTOCK_PYTHON names, or
/// each python3 along PATH.
std::vector<std::string> pythons_to_try();

}  // namespace penstock::arrow_files
