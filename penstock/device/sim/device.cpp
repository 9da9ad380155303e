#include "penstock/device/sim/device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/random.h"
#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

Nanoseconds rounded(double nanoseconds) {
  return Nanoseconds(std::llround(nanoseconds));
}

/// Of bytes that are read, and those that are written.
Nanoseconds time_within(std::size_t bytes) {
  return rounded(1e9 * static_cast<double>(bytes) / kSimMemoryBytesPerSecond);
}

std::size_t bytes_of(double gib) {
  return static_cast<std::size_t>(gib * (1 << 30));
}

}  // namespace

SimDevice::SimDevice(const DeviceSpec& spec, Clock& clock,
                     std::unique_ptr<Clock> own_clock)
    : Device({.name = "sim", .memory_kind = MemoryKind::sim, .clock = &clock}),
      spec_(spec),
      own_clock_(std::move(own_clock)),
      memory_("sim", bytes_of(spec.memory_gib)),
      pinned_("sim", std::numeric_limits<std::size_t>::max()) {}

Buffer SimDevice::allocate(std::size_t bytes) {
  Lock lock(mutex_);
  return Buffer(memory_.take(bytes), bytes, MemoryKind::sim,
                [this](std::byte* data, std::size_t size) {
                  Lock freeing(mutex_);
                  forget({data, size});
                  memory_.give_back(data);
                });
}

Buffer SimDevice::allocate_pinned(std::size_t bytes) {
  Lock lock(mutex_);
  return Buffer(pinned_.take(bytes), bytes, MemoryKind::cpu,
                [this](std::byte* data, std::size_t size) {
                  Lock freeing(mutex_);
                  forget({data, size});
                  pinned_.give_back(data);
                });
}

/// 1 GB/s is 1 byte per nanosecond.
Nanoseconds SimDevice::time_to_device(std::size_t bytes) const {
  return rounded(static_cast<double>(bytes) / spec_.copy_gb_s);
}

void SimDevice::close_stream(std::size_t stream) {
  Lock lock(mutex_);
  streams_[stream] = false;
}

DeviceMemory SimDevice::memory() const {
  Lock lock(mutex_);
  return memory_.state();
}

void SimDevice::queue_copy(SimLine& line, std::byte* to, const std::byte* from,
                           std::size_t bytes) {
  if (bytes == 0) return;
  wait_for_room();
  Lock lock(mutex_);
  std::optional<std::size_t> to_room = memory_.room_at(to);
  std::optional<std::size_t> from_room = memory_.room_at(from);
  PENSTOCK_ASSERT(to_room || from_room, "a copy on sim is from host to host");
  PENSTOCK_ASSERT(
      bytes <= to_room.value_or(bytes) && bytes <= from_room.value_or(bytes),
      "a copy on sim extends beyond its buffer");
  SimOperation operation{.read = {{from, bytes}},
                         .written = {{to, bytes}},
                         .effect = [=] { std::memcpy(to, from, bytes); }};
  if (to_room && from_room)
    return queue(line, std::move(operation), time_within(2 * bytes), nullptr);
  queue(line, std::move(operation), time_to_device(bytes),
        to_room ? &to_device_ : &from_device_);
}

Extent SimDevice::extent_of(const Footprint::Read& read) const {
  const bool pinned = !memory_.room_at(read.bytes.data());
  PENSTOCK_ASSERT(
      read.on_host || read.bytes.size() <= (pinned ? pinned_ : memory_)
                                               .room_at(read.bytes.data())
                                               .value_or(0),
      "work on sim reads beyond its buffer");
  return {read.bytes.data(), read.bytes.size()};
}

void SimDevice::queue_operation(SimLine& line, DeviceOperation operation) {
  const Footprint footprint = footprint_of(operation);
  if (footprint.written.empty()) return;
  wait_for_room();
  Lock lock(mutex_);
  SimOperation work{.poisoned = footprint.keeps_the_rest};
  std::size_t within = 0, from_host = 0;
  for (const Footprint::Read& read : footprint.read) {
    work.read.push_back(extent_of(read));
    (memory_.room_at(read.bytes.data()) ? within : from_host) += read.moved;
  }
  for (std::span<const std::byte> written : footprint.written) {
    PENSTOCK_ASSERT(
        written.size() <= memory_.room_at(written.data()).value_or(0),
        "work on sim writes beyond its target");
    work.written.push_back({written.data(), written.size()});
  }
  work.effect = effect_of(std::move(operation));
  if (from_host == 0)
    return queue(line, std::move(work),
                 time_within(within + footprint.bytes_written), nullptr);
  queue(line, std::move(work), time_to_device(from_host), &to_device_);
}

// `after` is taken before this operation is added to the line, so it holds
// exactly what comes before it: its own stream's work and what that waited for.
void SimDevice::queue(SimLine& line, SimOperation operation,
                      Nanoseconds duration, Engine* engine) {
  Nanoseconds start = std::max(clock().now(), line.end);
  if (engine != nullptr) start = std::max(start, *engine);
  line.end = start + duration;
  if (engine != nullptr) *engine = line.end;
  operation.stream = line.stream;
  operation.number = ++operations_;
  operation.after = line.before;
  operation.end = line.end;
  line.before.reach(line.stream, operation.number);
  pending_.add(std::move(operation));
}

void SimDevice::wait_for_room() {
  Horizon oldest;
  Nanoseconds end{0};
  {
    Lock lock(mutex_);
    if (pending_.size() < kSimMostPending) return;
    oldest = pending_.oldest().after;
    oldest.reach(pending_.oldest().stream, pending_.oldest().number);
    end = pending_.oldest().end;
  }
  clock().sleep_until(end);
  finish(oldest);
}

void SimDevice::finish(const Horizon& horizon) {
  Lock lock(mutex_);
  pending_.finish(horizon);
}

void SimDevice::forget(Extent freed) {
  std::size_t dropped = pending_.forget(freed);
  if (dropped == 0) return;
  log(LogLevel::warning,
      "sim: a buffer of " + std::to_string(freed.size) +
          " bytes was freed before its work was done; dropped operations: " +
          std::to_string(dropped));
}

Nanoseconds SimDevice::step_time(std::uint64_t number) const {
  // Sets the draws of steps apart from others with the same number.
  constexpr std::uint64_t kStepDraw = 0x73746570;
  double ms = spec_.step_ms;
  if (spec_.step_deviation_ms > 0)
    ms += spec_.step_deviation_ms * Random(0, 0, number, kStepDraw).normal();
  return rounded(1e6 * std::max(0.0, ms));
}

std::unique_ptr<Device> open_sim(const DeviceSpec& spec, Clock& clock) {
  return std::make_unique<SimDevice>(spec, clock, nullptr);
}

std::unique_ptr<Device> open_sim(const DeviceSpec& spec) {
  if (!spec.virtual_time) return open_sim(spec, wall_clock());
  auto clock = std::make_unique<VirtualClock>();
  Clock& time = *clock;
  return std::make_unique<SimDevice>(spec, time, std::move(clock));
}

}  // namespace penstock
