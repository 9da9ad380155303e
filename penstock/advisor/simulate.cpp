#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <tuple>

#include "penstock/advisor/pipeline.h"
#include "penstock/base/random.h"

// Discrete events: a worker, the copy or the step ends; then batches move on
// until nothing can. Time passes between two events only.

namespace penstock {
namespace {

/// Gamma of shape `k` >= 1 and scale 1, by Marsaglia and Tsang (2000).
/// A squeeze on a cubed normal number: at most one round in twenty is rejected.
/// drawn() takes shapes below 1 by way of k + 1 and the power 1 / k of a
/// uniform number.
double gamma_above_one(double k, Random& random) {
  const double d = k - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - random.uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

/// A time of this mean and variation.
double drawn(double mean, double cv, Random random) {
  if (cv == 0 || mean == 0) return mean;
  const double k = 1 / (cv * cv);
  const double drawn = k >= 1 ? gamma_above_one(k, random)
                              : gamma_above_one(k + 1, random) *
                                    std::pow(1 - random.uniform(), 1 / k);
  return mean * drawn / k;
}

/// Times of one kind that have passed, in ms.
struct TimesSeen {
  std::int64_t count = 0;
  double sum = 0;
  Durations spread = {};

  void add(double ms) {
    spread.add(from_seconds(1e-3 * ms));
    ++count;
    sum += ms;
  }
};

/// The places behind a stage.
class Places {
 public:
  Places(int places, Delivery delivery)
      : delivery_(delivery), here_(static_cast<std::size_t>(places)) {}

  // In order of steps the places belong to the next batches by number: a later
  // one that took any free place could keep out the one that the loop waits
  // for.
  bool has_room(std::int64_t batch) const {
    return delivery_ == Delivery::step ? batch < next_ + std::ssize(here_)
                                       : std::ssize(line_) < std::ssize(here_);
  }
  void put(std::int64_t batch) {
    if (delivery_ == Delivery::completion) return line_.push_back(batch);
    here_[index(batch)] = true;
    ++waiting_;
  }
  bool has_next() const {
    return delivery_ == Delivery::step ? here_[index(next_)] : !line_.empty();
  }
  std::int64_t take() {
    if (delivery_ == Delivery::completion) {
      const std::int64_t batch = line_.front();
      line_.pop_front();
      return batch;
    }
    here_[index(next_)] = false;
    --waiting_;
    return next_++;
  }
  /// Batches are here, and may not go before an earlier one.
  bool held() const { return waiting_ > 0 && !here_[index(next_)]; }

 private:
  std::size_t index(std::int64_t batch) const {
    return static_cast<std::size_t>(batch) % here_.size();
  }

  const Delivery delivery_;
  std::deque<std::int64_t> line_;  // delivery in order of completion
  std::vector<bool> here_;         // in order of number, from next_ on
  std::int64_t next_ = 0, waiting_ = 0;
};

// Invariants between two events:
// 1. Nothing can move: each worker serves a batch, waits for input that is not
//    there, or is blocked because the places after its stage are full.
// 2. A worker that has finished stays with its batch until there is room, so a
//    slow stage stops those before it (blocking after service).
// 3. Draws are keyed by batch and stage: a batch has the same luck under every
//    plan, so two plans differ by nothing but the plan.
class Simulation {
 public:
  explicit Simulation(const Pipeline& pipeline)
      : pipeline_(pipeline), room_on_device_(pipeline.copy_ms > 0 ? 2 : 1) {
    for (const PipelineStage& stage : pipeline.stages)
      stages_.emplace_back(stage, pipeline.delivery);
  }

  Snapshot run() {
    settle();
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      pass_time(event.ms - now_);
      end(event);
      settle();
    }
    return snapshot();
  }

 private:
  static constexpr int kCopy = -1, kStep = -2;

  struct Event {
    double ms = 0;
    std::int64_t number = 0;  // of events at one time the earlier is first
    int of = 0;               // a stage, kCopy or kStep
    std::int64_t batch = 0;
    bool operator<(const Event& other) const {
      return std::tie(other.ms, other.number) < std::tie(ms, number);
    }
  };

  struct Working {
    Working(const PipelineStage& of, Delivery delivery)
        : description(&of),
          service_ms(of.service_ms * std::pow(of.workers, 1 - of.scaling)),
          idle(of.workers),
          behind(of.queue, delivery) {}
    const PipelineStage* description;
    double service_ms;
    int idle;                           // workers
    std::vector<std::int64_t> blocked;  // batches whose worker waits for room
    Places behind;
    TimesSeen busy;
    double idle_ms = 0, blocked_ms = 0;
  };

  double draw(double mean, double cv, std::int64_t batch, int of) const {
    return drawn(mean, cv,
                 Random(static_cast<std::uint64_t>(pipeline_.seed), 0,
                        static_cast<std::uint64_t>(batch),
                        static_cast<std::uint64_t>(of + 2)));
  }
  void begin(double ms, int of, std::int64_t batch) {
    events_.push({now_ + ms, ++events_so_far_, of, batch});
  }

  void end(const Event& event) {
    if (event.of == kCopy) {
      copying_ = false;
      copied_.push_back(event.batch);
    } else if (event.of == kStep) {
      end_step();
    } else {
      stages_[static_cast<std::size_t>(event.of)].blocked.push_back(
          event.batch);
    }
  }

  /// Everything that can happen now. From the last stage to the first, since
  /// what a stage takes makes room for the one before it.
  void settle() {
    for (bool moved = true; moved;) {
      moved = move_on_device();
      for (std::size_t i = stages_.size(); i-- > 0;) {
        if (leave(stages_[i])) moved = true;
        if (enter(i)) moved = true;
      }
    }
  }

  bool leave(Working& stage) {
    const std::size_t left =
        std::erase_if(stage.blocked, [&](std::int64_t batch) {
          if (!stage.behind.has_room(batch)) return false;
          stage.behind.put(batch);
          return true;
        });
    stage.idle += static_cast<int>(left);
    return left > 0;
  }

  bool enter(std::size_t i) {
    Working& stage = stages_[i];
    const PipelineStage& as = *stage.description;
    bool moved = false;
    for (; stage.idle > 0 && has_input(i); moved = true) {
      const std::int64_t batch = i == 0 ? source_++ : before(i).take();
      const double ms =
          draw(stage.service_ms, as.cv, batch, static_cast<int>(i));
      stage.busy.add(ms);
      --stage.idle;
      begin(ms, static_cast<int>(i), batch);
    }
    return moved;
  }

  Places& before(std::size_t i) { return stages_[i - 1].behind; }
  bool has_input(std::size_t i) {
    return i == 0 ? source_ < pipeline_.batches : before(i).has_next();
  }

  bool move_on_device() {
    bool moved = false;
    Places& ready = stages_.back().behind;
    if (!copying_ && on_device_ < room_on_device_ && ready.has_next()) {
      const std::int64_t batch = ready.take();
      ++on_device_;
      got_.push_back(now_);
      moved = true;
      if (pipeline_.copy_ms > 0) {
        copying_ = true;
        copies_.add(pipeline_.copy_ms);
        begin(pipeline_.copy_ms, kCopy, batch);
      } else {
        copied_.push_back(batch);
      }
    }
    if (!stepping_ && !copied_.empty()) {
      begin_step();
      moved = true;
    }
    return moved;
  }

  void begin_step() {
    const double got = std::max(got_.front(), last_end_);
    got_.pop_front();
    if (steps_ > 0) {  // the first step starts the clock
      wait_data_ += got - last_end_;
      wait_copy_ += now_ - got;
    }
    const std::int64_t batch = copied_.front();
    copied_.pop_front();
    step_ms_ = draw(pipeline_.step_ms, pipeline_.step_cv, batch, kStep);
    stepping_ = true;
    begin(step_ms_, kStep, batch);
  }

  void end_step() {
    stepping_ = false;
    --on_device_;
    if (steps_++ > 0) steps_timed_.add(step_ms_);
    if (steps_ == 1) first_end_ = now_;
    last_end_ = now_;
  }

  void pass_time(double ms) {
    if (steps_ > 0 && on_device_ == 0 && order_is_missing()) wait_order_ += ms;
    for (Working& stage : stages_) {
      stage.idle_ms += ms * stage.idle;
      stage.blocked_ms += ms * static_cast<double>(stage.blocked.size());
    }
    now_ += ms;
  }

  /// Somebody who could go on waits while later batches are there.
  bool order_is_missing() const {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const bool waits = i + 1 == stages_.size() || stages_[i + 1].idle > 0;
      if (waits && stages_[i].behind.held()) return true;
    }
    return false;
  }

  static Nanoseconds from_ms(double ms) { return from_seconds(1e-3 * ms); }

  static StageNumbers numbers(const std::string& name, const TimesSeen& busy) {
    return {.name = name,
            .workers = 1,
            .items = busy.count,
            .busy_wall = from_ms(busy.sum),
            .busy_cpu = from_ms(busy.sum),
            .times = busy.spread};
  }

  Snapshot snapshot() const {
    Snapshot window;
    window.parts = {.steps = steps_timed_.count,
                    .samples = steps_timed_.count,
                    .wall = from_ms(last_end_ - first_end_),
                    .compute = from_ms(steps_timed_.sum),
                    .wait_data = from_ms(wait_data_),
                    .wait_copy = from_ms(wait_copy_)};
    window.wait_order = from_ms(wait_order_);
    window.restores_order = pipeline_.delivery == Delivery::step;
    window.step_cv = steps_timed_.spread.variation();
    window.limits.cpus = pipeline_.cpus;
    if (pipeline_.copy_ms > 0) window.copy = numbers("copy", copies_);
    for (const Working& stage : stages_) {
      StageNumbers& of = window.stages.emplace_back(
          numbers(stage.description->name, stage.busy));
      of.workers = stage.description->workers;
      of.places = stage.description->queue;
      of.blocked_get = from_ms(stage.idle_ms);
      of.blocked_put = from_ms(stage.blocked_ms);
    }
    return window;
  }

  const Pipeline& pipeline_;
  const int room_on_device_;
  std::vector<Working> stages_;
  std::priority_queue<Event> events_;
  std::int64_t events_so_far_ = 0, source_ = 0;
  double now_ = 0;

  // The device: batches on it are copied, wait for their step, or are in it.
  int on_device_ = 0;
  bool copying_ = false, stepping_ = false;
  std::deque<std::int64_t> copied_;
  std::deque<double> got_;  // when those on the device left the last stage
  double step_ms_ = 0, first_end_ = 0, last_end_ = 0;
  double wait_data_ = 0, wait_copy_ = 0, wait_order_ = 0;
  std::int64_t steps_ = 0;
  TimesSeen steps_timed_, copies_;
};

}  // namespace

Snapshot simulate(const Pipeline& pipeline) {
  return Simulation(pipeline).run();
}

}  // namespace penstock
