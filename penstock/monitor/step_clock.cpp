#include "penstock/monitor/step_clock.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/exec/exec.h"

namespace penstock {
namespace {

// A GPU without work passes an event some 10 us after it was recorded, and when
// it did is known to 100 us.
constexpr Nanoseconds kDrained = std::chrono::microseconds(200);

void tell(SpanLane lane, std::string_view name, Nanoseconds begin,
          Nanoseconds end, std::int64_t step) {
  if (end > begin)
    spans::tell(
        {.lane = lane, .name = name, .begin = begin, .end = end, .step = step});
}

}  // namespace

bool StepParts::steps_take_time() const {
  constexpr Nanoseconds kLeast = std::chrono::microseconds(5);
  return steps > 0 && compute >= kLeast * steps;
}

double StepParts::utilisation() const {
  if (wall.count() <= 0) return std::numeric_limits<double>::quiet_NaN();
  return seconds(compute) / seconds(wall);
}

StepParts& StepParts::operator+=(const StepParts& other) {
  steps += other.steps;
  samples += other.samples;
  wall += other.wall;
  compute += other.compute;
  wait_data += other.wait_data;
  wait_copy += other.wait_copy;
  host += other.host;
  sync += other.sync;
  drained += other.drained;
  return *this;
}

StepParts StepParts::operator-(const StepParts& earlier) const {
  StepParts rest = *this;
  rest.steps -= earlier.steps;
  rest.samples -= earlier.samples;
  rest.wall -= earlier.wall;
  rest.compute -= earlier.compute;
  rest.wait_data -= earlier.wait_data;
  rest.wait_copy -= earlier.wait_copy;
  rest.host -= earlier.host;
  rest.sync -= earlier.sync;
  rest.drained -= earlier.drained;
  return rest;
}

void StepClock::ask() { ask(clock_->now()); }
void StepClock::ask_at_once() {
  PENSTOCK_ASSERT(queued_,
                  "a step was queued since the last batch was asked for");
  ask(*queued_);
}

void StepClock::ask(Nanoseconds now) {
  current_.asked = now;
  queued_.reset();
  // All steps before a pause are accounted for: the next one follows from here.
  if (std::exchange(paused_, false)) last_end_ = current_.asked;
}

void StepClock::got(Stream& stream) {
  before_wait(stream);
  const bool never_behind = current_.before_wait.state() == nullptr;
  current_.got = never_behind ? current_.before_wait.time() : clock_->now();
}

void StepClock::before_wait(Stream& stream) {
  current_.before_wait = stream.record();
}

void StepClock::after_wait(Stream& stream) {
  // A stream that is never behind has waited for nothing.
  const bool never_behind = current_.before_wait.state() == nullptr;
  current_.after_wait = never_behind ? current_.before_wait : stream.record();
}

void StepClock::after_step(Stream& stream) {
  current_.after_step = stream.record();
  const bool never_behind = current_.after_step.state() == nullptr;
  current_.queued = never_behind ? current_.after_step.time() : clock_->now();
  queued_ = current_.queued;
  current_.group = group_;
  current_.samples = samples_;
  current_.number = std::exchange(number_, -1);
  current_.starts_clock = std::exchange(starts_clock_, false);
  const bool first = pending_.empty();
  if (first && current_.after_step.passed())
    account(current_);
  else
    pending_.push_back(std::move(current_));
  current_ = Step();
  if (!first) collect(false);
}

void StepClock::pause() {
  finish();
  paused_ = true;
}

void StepClock::add(const StepParts& step, std::int64_t label) {
  add(step, label, -1);
}

void StepClock::add(const StepParts& step, std::int64_t label,
                    std::int64_t number) {
  if (label != label_) {
    sum_up_group();
    label_ = label;
  }
  total_ += step;
  const bool full = slowest_.size() == kSlowest;
  if (full && step.wall <= slowest_.back().parts.wall) return;
  if (full) slowest_.pop_back();
  auto faster = std::ranges::find_if(slowest_, [&](const SlowStep& other) {
    return other.parts.wall < step.wall;
  });
  slowest_.insert(faster, {.group = label, .number = number, .parts = step});
}

void StepClock::sum_up_group() {
  if (total_.steps == summed_up_.steps) return;
  by_group_[label_] += total_ - summed_up_;
  summed_up_ = total_;
}

void StepClock::forget(std::int64_t label) {
  sum_up_group();
  by_group_.erase(label);
}

void StepClock::finish() { collect(true); }

const StepParts& StepClock::total() {
  collect(false);
  return total_;
}

const std::map<std::int64_t, StepParts>& StepClock::by_group() {
  collect(false);
  sum_up_group();
  return by_group_;
}

const std::vector<SlowStep>& StepClock::slowest() {
  collect(false);
  return slowest_;
}

void StepClock::collect(bool wait) {
  while (!pending_.empty()) {
    const Event& end = pending_.front().after_step;
    if (wait) end.wait();
    if (!end.passed()) return;
    account(pending_.front());
    pending_.pop_front();
  }
}

// The wall time of a step, from the end of the one before to its own end, is
// divided without rest:
//   last_end --- idle --- before_wait -- copy -- after_wait -- compute -- end
// Of the idle time, what overlaps [asked, got] was spent on waiting for the
// batch; the loop itself took the rest.
void StepClock::account(const Step& step) {
  Nanoseconds end = step.after_step.time();
  if (step.starts_clock) {
    last_end_ = end;
    return;
  }
  // A borrowed stream may hold foreign work: clamp, so that parts stay >= 0.
  Nanoseconds before = std::max(step.before_wait.time(), last_end_);
  Nanoseconds after = std::max(step.after_wait.time(), before);
  end = std::max(end, after);
  Nanoseconds idle = before - last_end_;
  Nanoseconds overlap =
      std::min(step.got, before) - std::max(step.asked, last_end_);
  StepParts parts{.steps = 1, .samples = step.samples, .wall = end - last_end_};
  parts.wait_data = std::clamp(overlap, Nanoseconds(0), idle);
  parts.host = idle - parts.wait_data;
  parts.wait_copy = after - before;
  parts.compute = end - after;
  parts.drained = end <= step.queued + kDrained ? 1 : 0;
  add(parts, step.group, step.number);
  // Virtual time would not fit to that of the threads.
  if (spans::heard() && clock_ == &wall_clock()) {
    tell(SpanLane::loop, "wait for the batch", step.asked, step.got,
         step.number);
    tell(SpanLane::device, "wait for data or the host", last_end_, before,
         step.number);
    tell(SpanLane::device, "wait for the copy", before, after, step.number);
    tell(SpanLane::device, "step", after, end, step.number);
  }
  last_end_ = end;
}

}  // namespace penstock
