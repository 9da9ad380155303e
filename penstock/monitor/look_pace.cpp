#include "penstock/monitor/look_pace.h"

#include <utility>

namespace penstock {
namespace {

// Looks that tell enough to take one's time from then on.
constexpr int kOften = 40;
constexpr int kSeldom = 200;
constexpr int kOfNoWaiting = 4;

}  // namespace

void LookPace::add(std::int64_t working, std::int64_t waiting) {
  if (working == 0) return;
  if (waiting > 0 && !std::exchange(has_waited_, true)) learned_ = 0;
  learned_ += has_waited_ ? 1 : kOfNoWaiting;
}

int LookPace::periods() const {
  if (learned_ < kOften) return 1;
  if (learned_ >= kSeldom) return 20;
  return has_waited_ ? 4 : 10;
}

}  // namespace penstock
