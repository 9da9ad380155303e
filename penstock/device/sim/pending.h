#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "penstock/base/clock.h"

namespace penstock {

/// How far each stream of a device had come at some point: the work that
/// comes before that point (a vector clock: Fidge 1988, Mattern 1989).
class Horizon {
 public:
  bool covers(std::size_t stream, std::uint64_t number) const {
    return stream < last_.size() && number <= last_[stream];
  }
  void reach(std::size_t stream, std::uint64_t number);
  void merge(const Horizon& other);

 private:
  std::vector<std::uint64_t> last_;  // by stream; 0 is before all work
};

/// A run of memory.
struct Extent {
  const std::byte* start;
  std::size_t size;

  bool overlaps(const Extent& other) const {
    return start < other.start + other.size && other.start < start + size;
  }
};

/// Work that was queued on a stream and has not changed memory yet.
struct SimOperation {
  std::size_t stream = 0;
  std::uint64_t number = 0;  ///< grows with every operation of the device
  Horizon after;             ///< what comes before it
  Nanoseconds end{0};        ///< on the clock of the device
  std::vector<Extent> read;
  std::vector<Extent> written;
  std::function<void()> effect;
  /// Its target shows that it is still to come, or must not, since work that
  /// writes a part of it keeps the rest.
  bool poisoned = false;
};

/// The operations of all streams of a device that have not changed memory
/// yet, in the order of the calls. As an event can only be waited for after
/// it was recorded, that order is always a right one to do them in.
/// Not thread-safe.
class Pending {
 public:
  /// Poisons the target, at once or as soon as the work before it is done.
  void add(SimOperation operation);
  /// Does all work that comes before `horizon`.
  void finish(const Horizon& horizon);
  /// Drops the work that would touch `freed`; returns how many those were.
  std::size_t forget(Extent freed);
  std::size_t size() const { return operations_.size(); }
  const SimOperation& oldest() const { return operations_.front(); }

 private:
  bool target_in_use(const SimOperation& by) const;
  void poison_targets();

  std::vector<SimOperation> operations_;
};

}  // namespace penstock
