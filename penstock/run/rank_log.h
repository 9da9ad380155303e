#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/base/log_copy.h"
#include "penstock/base/sync.h"
#include "penstock/session/session.h"

namespace penstock {

/// The log of one of several ranks, `ranks/N.log` in the folder of the run:
/// what goes into the log of its process, from `info` up, and what it tells its
/// listener, which shows it on rank 0 alone. A line has its time in UTC. No
/// other process writes the file. Thread-safe.
class RankLog {
 public:
  explicit RankLog(int rank);
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;

  /// What was said before the folder of the run is known is kept until then.
  /// A file that cannot be written ends no run: the log reports it.
  void open(const std::filesystem::path& run);
  void add(std::string_view line);
  /// For a `catch (...)`: the exception that is being handled.
  void add_failure();
  /// The same listener, whose notes are logged; for all ranks but the first the
  /// log alone. It refers to this.
  TrainListener logged(TrainListener listener);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& lines) PENSTOCK_REQUIRES(mutex_);

  const int rank_;
  Mutex mutex_;
  std::string kept_ PENSTOCK_GUARDED_BY(mutex_);  // before the file is open
  bool opened_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::FILE, Close> file_ PENSTOCK_GUARDED_BY(mutex_);
  const LogCopy copy_;  // last: its writer is called from here on
};

}  // namespace penstock
