#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/exec/exec.h"

namespace penstock {

/// What the threads of the pipeline, the loop and the device did, piece by
/// piece, on the machine's monotonic clock: to be looked at in ui.perfetto.dev
/// or chrome://tracing. Listens from its construction on. Thread-safe.
class Trace {
 public:
  /// Keeps `most` pieces of work, each of 40 bytes; what follows is counted
  /// alone.
  explicit Trace(std::size_t most = kMost);

  /// Listens no more.
  void end() { listening_.reset(); }
  std::size_t kept() const;
  /// The trace up to now, in the Trace Event Format: complete events ("X") with
  /// times in microseconds, one track for each thread under "pipeline", and
  /// tracks of the loop and the device of their own. `otherData.dropped`: what
  /// was not kept.
  std::string text() const;
  /// Writes it. Throws Error(request) with the path and the reason.
  void write(const std::filesystem::path& file) const;

  static constexpr std::size_t kMost = std::size_t{1} << 20;

 private:
  class Keeper;
  std::shared_ptr<Keeper> keeper_;
  std::shared_ptr<void> listening_;
};

}  // namespace penstock
