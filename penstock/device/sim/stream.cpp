#include "penstock/device/sim/stream.h"

#include <algorithm>

#include "penstock/base/error.h"

namespace penstock {
namespace {

// Never changes, so any thread may ask it.
class SimEvent final : public Event::State {
 public:
  SimEvent(SimDevice& device, Nanoseconds time, Horizon before, bool timed)
      : device_(device),
        time_(time),
        before_(std::move(before)),
        timed_(timed) {}

  bool passed() override {
    if (device_.clock().now() < time_) return false;
    device_.finish(before_);
    return true;
  }
  void wait() override {
    device_.clock().sleep_until(time_);
    device_.finish(before_);
  }
  Nanoseconds time() override {
    PENSTOCK_ASSERT(timed_,
                    "an event that was recorded without a time has none");
    wait();
    return time_;
  }

  const SimDevice& device() const { return device_; }
  Nanoseconds end() const { return time_; }
  const Horizon& before() const { return before_; }

 private:
  SimDevice& device_;
  const Nanoseconds time_;
  const Horizon before_;
  const bool timed_;
};

}  // namespace

Nanoseconds SimStream::next_start() const {
  return std::max(device_.clock().now(), line_.end);
}

Event SimStream::recorded(bool timed) {
  return Event(
      std::make_shared<SimEvent>(device_, next_start(), line_.before, timed));
}

void SimStream::wait(const Event& event) {
  auto* ours = dynamic_cast<const SimEvent*>(event.state());
  // The event of another device is on another clock: the host waits for it.
  if (ours == nullptr || &ours->device() != &device_) return event.wait();
  line_.end = std::max(line_.end, ours->end());
  line_.before.merge(ours->before());
}

void SimStream::step(std::uint64_t number) {
  line_.end = next_start() + device_.step_time(number);
}

void SimStream::synchronize() {
  device_.clock().sleep_until(line_.end);
  device_.finish(line_.before);
}

std::unique_ptr<Stream> SimDevice::make_stream() {
  Lock lock(mutex_);
  auto unused = std::ranges::find(streams_, false);
  auto stream = static_cast<std::size_t>(unused - streams_.begin());
  if (unused == streams_.end()) streams_.push_back(false);
  streams_[stream] = true;
  return std::make_unique<SimStream>(*this, stream);
}

}  // namespace penstock
