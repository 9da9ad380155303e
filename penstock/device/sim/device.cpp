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

// Within the device each byte is read and written.
Nanoseconds time_within(std::size_t bytes) {
  return rounded(2e9 * static_cast<double>(bytes) / kSimMemoryBytesPerSecond);
}

std::size_t bytes_of(double gib) {
  return static_cast<std::size_t>(gib * (1 << 30));
}

/// Rows of a gather that are in one piece of its table.
struct RowsRead {
  std::size_t least, most, count;
  std::uint64_t shift;
};

std::vector<RowsRead> rows_read(const Gather& gather) {
  std::vector<RowsRead> found;
  for (std::size_t p = 0; p <= gather.pieces.size(); ++p) {
    std::int64_t begin = p == 0 ? 0 : gather.pieces[p - 1].first;
    std::int64_t end = p < gather.pieces.size()
                           ? gather.pieces[p].first
                           : std::numeric_limits<std::int64_t>::max();
    std::int64_t least = end, most = -1, count = 0;
    for (std::int64_t row : gather.rows) {
      if (row < begin || row >= end) continue;
      least = std::min(least, row);
      most = std::max(most, row);
      ++count;
    }
    if (count > 0)
      found.push_back({static_cast<std::size_t>(least),
                       static_cast<std::size_t>(most),
                       static_cast<std::size_t>(count),
                       p == 0 ? 0 : gather.pieces[p - 1].shift});
  }
  return found;
}

// The effect of a gather with copies of all that the caller's spans showed.
std::function<void()> effect_of(const Gather& gather) {
  return [fields = std::vector(gather.fields.begin(), gather.fields.end()),
          rows = std::vector(gather.rows.begin(), gather.rows.end()),
          pieces = std::vector(gather.pieces.begin(), gather.pieces.end())] {
    gather_on_host({fields, rows, pieces});
  };
}

}  // namespace

SimDevice::SimDevice(const DeviceSpec& spec, Clock& clock,
                     std::unique_ptr<Clock> own_clock)
    : Device(MemoryKind::sim),
      spec_(spec),
      own_clock_(std::move(own_clock)),
      clock_(clock),
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
    return queue(line, std::move(operation), time_within(bytes), nullptr);
  queue(line, std::move(operation), time_to_device(bytes),
        to_room ? &to_device_ : &from_device_);
}

void SimDevice::queue_gather(SimLine& line, const Gather& gather) {
  if (gather.rows.empty() || gather.fields.empty()) return;
  PENSTOCK_ASSERT(std::ranges::min(gather.rows) >= -1,
                  "a gather names a row below -1");
  wait_for_room();
  Lock lock(mutex_);
  SimOperation operation{.effect = effect_of(gather)};
  std::size_t moved = 0, from_host = 0;
  for (const GatherField& field : gather.fields) {
    if (field.bytes == 0) continue;
    PENSTOCK_ASSERT(field.bytes <= field.row_stride,
                    "a field of a gather extends beyond its row");
    std::size_t bytes = field.bytes * gather.rows.size();
    PENSTOCK_ASSERT(bytes <= memory_.room_at(field.out).value_or(0),
                    "a gather on sim writes beyond its target");
    operation.written.push_back({field.out, bytes});
    moved += bytes;
    for (const RowsRead& rows : rows_read(gather)) {
      auto* first = reinterpret_cast<const std::byte*>(
          reinterpret_cast<std::uintptr_t>(field.table) +
          rows.least * field.row_stride + rows.shift);
      std::size_t read =
          (rows.most - rows.least) * field.row_stride + field.bytes;
      bool pinned = !memory_.room_at(first);
      PENSTOCK_ASSERT(
          read <= (pinned ? pinned_ : memory_).room_at(first).value_or(0),
          "a gather on sim reads beyond its table");
      operation.read.push_back({first, read});
      if (pinned) from_host += rows.count * field.bytes;
    }
  }
  if (moved == 0) return;
  if (from_host == 0)
    return queue(line, std::move(operation), time_within(moved), nullptr);
  queue(line, std::move(operation), time_to_device(from_host), &to_device_);
}

void SimDevice::queue_kernel(SimLine& line, HostKernel kernel) {
  wait_for_room();
  Lock lock(mutex_);
  SimOperation operation{.effect = std::move(kernel.run)};
  std::size_t moved = 0, from_host = 0;
  auto check = [&](const SimMemory& memory, std::span<const std::byte> extent) {
    PENSTOCK_ASSERT(extent.size() <= memory.room_at(extent.data()).value_or(0),
                    "a kernel on sim leaves its buffer");
    return Extent{extent.data(), extent.size()};
  };
  for (std::span<const std::byte> extent : kernel.read) {
    bool pinned = pinned_.room_at(extent.data()).has_value();
    operation.read.push_back(check(pinned ? pinned_ : memory_, extent));
    (pinned ? from_host : moved) += extent.size();
  }
  for (std::span<const std::byte> extent : kernel.written) {
    operation.written.push_back(check(memory_, extent));
    moved += extent.size();
  }
  if (from_host == 0)
    return queue(line, std::move(operation), time_within(moved / 2), nullptr);
  queue(line, std::move(operation), time_to_device(from_host), &to_device_);
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
