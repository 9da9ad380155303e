#pragma once

#include <algorithm>
#include <deque>
#include <queue>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/monitor/monitor.h"

namespace penstock {

/// A loop over a source that answers late, as a loader makes it: each batch is
/// read in parts by threads that wait for their answer, and handed out in its
/// order; only so many batches are under way or ready.
struct FarSource {
  int readers = 4, prefetch = 2;
  int parts = 2;            ///< of a batch
  double answer_ms = 3.4;   ///< by one reader
  double varies = 0.1;      ///< each answer, by so much more or less
  double hindrance = 0.01;  ///< so much later for each reader
  double step_ms = 1;
};

/// Its batches in virtual time.
class FarBatches {
 public:
  FarBatches(const FarSource& loop, std::uint64_t seed)
      : loop_(loop), seed_(seed), idle_(loop.readers) {}

  void run(std::int64_t steps) {
    while (taken_ < steps) {
      ask();
      if (ready() && free_at_ <= now_) {
        ++taken_;
        free_at_ = now_ + loop_.step_ms;
      } else if (ready() &&
                 (answers_.empty() || free_at_ < answers_.top().ms)) {
        now_ = free_at_;
      } else {
        now_ = answers_.top().ms;
        --missing_[static_cast<std::size_t>(answers_.top().batch)];
        answers_.pop();
        ++idle_;
      }
    }
  }
  double wall_ms() const { return std::max(now_, free_at_); }
  double busy_ms() const { return busy_; }

 private:
  struct Answer {
    double ms;
    std::int64_t batch;
    bool operator<(const Answer& other) const { return ms > other.ms; }
  };

  void ask() {
    for (; planned_ - taken_ < loop_.prefetch; ++planned_) {
      missing_.push_back(loop_.parts);
      asked_.insert(asked_.end(), static_cast<std::size_t>(loop_.parts),
                    planned_);
    }
    for (; idle_ > 0 && !asked_.empty(); --idle_, ++requests_) {
      Random random(seed_, 0, requests_, 0);
      const double ms = loop_.answer_ms *
                        (1 + loop_.hindrance * loop_.readers) *
                        (1 + loop_.varies * (2 * random.uniform() - 1));
      busy_ += ms;
      answers_.push({now_ + ms, asked_.front()});
      asked_.pop_front();
    }
  }
  /// The next batch, in their order.
  bool ready() const {
    return taken_ < planned_ && missing_[static_cast<std::size_t>(taken_)] == 0;
  }

  const FarSource loop_;
  const std::uint64_t seed_;
  int idle_;  // readers
  double now_ = 0, busy_ = 0, free_at_ = 0;
  std::int64_t planned_ = 0, taken_ = 0;
  std::uint64_t requests_ = 0;
  std::deque<std::int64_t> asked_;  // the batch of each part
  std::vector<int> missing_;        // parts, by batch
  std::priority_queue<Answer> answers_;
};

/// One window of its meters.
inline Snapshot window_of(const FarSource& loop, std::uint64_t seed) {
  constexpr std::int64_t kSteps = 800, kRows = 64;
  FarBatches batches(loop, seed);
  batches.run(kSteps);
  auto time = [](double ms) { return from_seconds(1e-3 * ms); };
  const double steps_ms = kSteps * loop.step_ms;
  Snapshot window;
  window.parts = {.steps = kSteps,
                  .samples = kSteps * kRows,
                  .wall = time(batches.wall_ms()),
                  .compute = time(steps_ms),
                  .wait_data = time(batches.wall_ms() - steps_ms)};
  window.batch_size = kRows;
  window.prefetch = loop.prefetch;
  window.stages = {{.name = "read",
                    .work = StageWork::reads,
                    .workers = loop.readers,
                    .pool = "readers",
                    .items = kSteps * kRows,
                    .calls = kSteps * loop.parts,
                    .busy_wall = time(batches.busy_ms()),
                    .busy_cpu = time(0.02 * batches.busy_ms())},
                   {.name = "parse",
                    .work = StageWork::parses,
                    .workers = 1,
                    .pool = "loader",
                    .items = kSteps * kRows,
                    .busy_wall = time(0.1 * kSteps),
                    .busy_cpu = time(0.1 * kSteps)}};
  return window;
}

}  // namespace penstock
