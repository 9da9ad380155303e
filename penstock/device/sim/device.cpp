#include "penstock/device/sim/device.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/random.h"
#include "penstock/device/sim/sim.h"

namespace penstock {
namespace {

Nanoseconds rounded(double nanoseconds) {
  return Nanoseconds(std::llround(nanoseconds));
}

// Within the device each byte is read and written.
Nanoseconds time_within(std::size_t bytes) {
  return rounded(2e9 * static_cast<double>(bytes) / kSimMemoryBytesPerSecond);
}

std::size_t bytes_of(double gib) {
  return static_cast<std::size_t>(gib * (1 << 30));
}

// The effect of a gather with copies of all that the caller's spans showed.
std::function<void()> effect_of(const Gather& gather) {
  return [fields = std::vector(gather.fields.begin(), gather.fields.end()),
          rows = std::vector(gather.rows.begin(), gather.rows.end())] {
    gather_on_host({fields, rows});
  };
}

}  // namespace

SimDevice::SimDevice(const DeviceSpec& spec, Clock& clock,
                     std::unique_ptr<Clock> own_clock)
    : Device(MemoryKind::sim),
      spec_(spec),
      own_clock_(std::move(own_clock)),
      clock_(clock),
      memory_("sim", bytes_of(spec.memory_gib)) {}

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
  AlignedBytes data = allocate_host(bytes, "sim");
  std::memset(data.get(), std::to_integer<int>(kPoison), bytes);
  return Buffer(data.release(), bytes, MemoryKind::cpu,
                [this](std::byte* freed, std::size_t size) {
                  Lock freeing(mutex_);
                  forget({freed, size});
                  FreeAligned()(freed);
                });
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
    return queue(line, std::move(operation), time_within(bytes), nullptr);
  // 1 GB/s is 1 byte per nanosecond.
  Nanoseconds time = rounded(static_cast<double>(bytes) / spec_.copy_gb_s);
  queue(line, std::move(operation), time,
        to_room ? &to_device_ : &from_device_);
}

void SimDevice::queue_gather(SimLine& line, const Gather& gather) {
  if (gather.rows.empty() || gather.fields.empty()) return;
  auto [least, most] = std::ranges::minmax(gather.rows);
  PENSTOCK_ASSERT(least >= -1, "a gather names a row below -1");
  wait_for_room();
  Lock lock(mutex_);
  SimOperation operation{.effect = effect_of(gather)};
  std::size_t moved = 0;
  for (const GatherField& field : gather.fields) {
    if (field.bytes == 0) continue;
    PENSTOCK_ASSERT(field.bytes <= field.row_stride,
                    "a field of a gather extends beyond its row");
    std::size_t bytes = field.bytes * gather.rows.size();
    PENSTOCK_ASSERT(bytes <= memory_.room_at(field.out).value_or(0),
                    "a gather on sim writes beyond its target");
    operation.written.push_back({field.out, bytes});
    moved += bytes;
    if (most < 0) continue;
    std::size_t read =
        static_cast<std::size_t>(most) * field.row_stride + field.bytes;
    PENSTOCK_ASSERT(read <= memory_.room_at(field.table).value_or(0),
                    "a gather on sim reads beyond its table");
    operation.read.push_back({field.table, read});
  }
  if (moved == 0) return;
  queue(line, std::move(operation), time_within(moved), nullptr);
}

void SimDevice::queue_kernel(SimLine& line, HostKernel kernel) {
  wait_for_room();
  Lock lock(mutex_);
  SimOperation operation{.effect = std::move(kernel.run)};
  std::size_t moved = 0;
  auto check = [&](std::span<const std::byte> extent) PENSTOCK_REQUIRES(
                   mutex_) {
    PENSTOCK_ASSERT(extent.size() <= memory_.room_at(extent.data()).value_or(0),
                    "a kernel on sim leaves its buffer");
    moved += extent.size();
    return Extent{extent.data(), extent.size()};
  };
  for (std::span<const std::byte> extent : kernel.read)
    operation.read.push_back(check(extent));
  for (std::span<const std::byte> extent : kernel.written)
    operation.written.push_back(check(extent));
  queue(line, std::move(operation), time_within(moved / 2), nullptr);
}

void SimDevice::queue(SimLine& line, SimOperation operation,
                      Nanoseconds duration, Engine* engine) {
  Nanoseconds start = std::max(clock_.now(), line.end);
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
  clock_.sleep_until(end);
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
