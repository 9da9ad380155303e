#pragma once

#include <cstdint>

namespace penstock {

/// How often threads at work are looked at: each look tells less than the one
/// before it. What there is to tell is what they wait for: until a look finds
/// one that waits, each counts as four, and from then on as one. A look at
/// nobody tells nothing, and counts for nothing. One thread.
class LookPace {
 public:
  /// A look found so many threads at work, of which some waited.
  void add(std::int64_t working, std::int64_t waiting);
  /// Until the next look: 1 for 40 looks, then 4, or 10 where none found one
  /// that waits, for as many as make 200, then 20.
  int periods() const;

 private:
  std::int64_t learned_ = 0;  // in looks
  bool has_waited_ = false;
};

}  // namespace penstock
