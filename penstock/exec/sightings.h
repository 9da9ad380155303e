#pragma once

#include <cstdint>

namespace penstock {

/// How long threads at work were in each state, by looking at them now and
/// then: in periods, of which a look counts as many as have passed since the
/// one before it.
struct ThreadSightings {
  std::int64_t running = 0;      ///< or ready to, without a processor
  std::int64_t in_lock = 0;      ///< that another process may hold
  std::int64_t in_own_lock = 0;  ///< that only threads of the process know
  std::int64_t in_file = 0;
  std::int64_t in_network = 0;
  std::int64_t asleep = 0;
  std::int64_t other = 0;
  std::int64_t looks = 0;  ///< how many that is from

  std::int64_t waiting() const {
    return in_locks() + in_file + in_network + asleep + other;
  }
  std::int64_t in_locks() const { return in_lock + in_own_lock; }
  std::int64_t total() const { return running + waiting(); }
  /// How many of the looks found them waiting.
  std::int64_t looks_waiting() const {
    return total() == 0 ? 0 : looks * waiting() / total();
  }
  ThreadSightings& operator+=(const ThreadSightings& more) {
    running += more.running;
    in_lock += more.in_lock;
    in_own_lock += more.in_own_lock;
    in_file += more.in_file;
    in_network += more.in_network;
    asleep += more.asleep;
    other += more.other;
    looks += more.looks;
    return *this;
  }
};

}  // namespace penstock
