#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "penstock/sources/files/data_files.h"
#include "penstock/sources/hdf5/kept_index.h"
#include "penstock/sources/stop.h"

namespace penstock::hdf5 {

/// The process that links libhdf5 and indexes files, one after the other. One
/// thread's.
///
/// It is started when it is first needed. One that is killed, or says nothing
/// for 1.5 seconds of its own processor time (or is stopped), is named in the
/// log within two seconds, ended, and another one does the file again; where
/// that one hangs too, or the third one is killed, it is an error. One that
/// dies by itself on a file is an error of that file.
class IndexProcess {
 public:
  explicit IndexProcess(StopFlag stop) : stop_(stop) {}
  ~IndexProcess();
  IndexProcess(const IndexProcess&) = delete;
  IndexProcess& operator=(const IndexProcess&) = delete;

  /// Asks no process where an earlier start kept the index. Throws
  /// Error(source): hdf5.damaged, hdf5.crashed, hdf5.killed, hdf5.hung,
  /// hdf5.memory, hdf5.writing, hdf5.no_hdf5, hdf5.no_program.
  FileIndex index(const files::DataFile& file);

  /// Of the running one, for tests; 0: none runs.
  pid_t number() const { return process_; }

 private:
  enum class End { answered, killed, hung };

  void start();
  void end();
  /// Sends the path and takes frames until `done`.
  End ask(const files::DataFile& file, SentIndex& sent);
  bool take(void* to, std::size_t size);
  bool wait_for_bytes();
  [[noreturn]] void died(const files::DataFile& file, int status);

  const StopFlag stop_;
  pid_t process_ = 0;
  int to_ = -1, from_ = -1;
  bool hung_ = false;
};

}  // namespace penstock::hdf5
