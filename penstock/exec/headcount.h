#pragma once

#include <atomic>

namespace penstock {

/// How many threads a stage is to have: those that are too many end when they
/// ask, between two pieces of work. Thread-safe, but for set().
class Headcount {
 public:
  explicit Headcount(int threads) : wanted_(threads) {}

  int wanted() const { return wanted_; }
  /// True for a thread that is to end now.
  bool leaves() {
    int surplus = surplus_;
    while (surplus > 0)
      if (surplus_.compare_exchange_weak(surplus, surplus - 1)) return true;
    return false;
  }
  /// Lets threads end, or calls `start` for more, which gives how many it could
  /// start. By one thread at a time.
  template <class Start>
  void set(int threads, Start start) {
    int more = threads - wanted_.exchange(threads);
    if (more < 0) surplus_ -= more;
    while (more > 0 && leaves()) --more;  // one that would end stays instead
    if (more > 0) wanted_ -= more - start(more);
  }

 private:
  std::atomic<int> wanted_;
  std::atomic<int> surplus_{0};
};

}  // namespace penstock
