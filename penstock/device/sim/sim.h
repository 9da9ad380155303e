#pragma once

#include <memory>

#include "penstock/device/device.h"

namespace penstock {

/// What unwritten device memory, and the target of work that is still under
/// way, reads as.
inline constexpr std::byte kPoison{0xDB};

/// Bandwidth of the simulated device's own memory. A gather reads and writes
/// each byte once, so it takes 2 x bytes / this; other operations take what
/// they read and write.
inline constexpr double kSimMemoryBytesPerSecond = 1e12;

/// How many copies and operations of a device can be queued.
inline constexpr std::size_t kSimMostPending = 1024;

/// Opens an accelerator that exists only on a clock, to find missing waits
/// and to measure an input path on a machine without a GPU.
///
/// Time. Nothing runs in the background and there are no threads. When work
/// is queued, its times are computed:
///
///     start = the latest of: now, the end of the work before it in its
///             stream, the events that the stream waits for, and for a copy
///             the end of the copy before it in the same direction
///     end   = start + duration
///
///     copy    bytes / copy_gb_s; one engine to the device and one from it,
///             shared by all streams, in the order of the calls
///     copy within the device, operations: see kSimMemoryBytesPerSecond; one
///             that reads pinned memory is on the engine to the device instead
///     step    step_ms, or a draw from the normal distribution that depends
///             on the step's number alone, at least 0
///     event   no time of its own
///
/// Waiting for an event sleeps on the clock until its end. On the wall clock
/// that takes as long as it says. On a virtual clock it returns at once with
/// the clock moved forward, so a test of hours takes milliseconds; but time
/// stands still for a loop that only polls Event::passed().
///
/// Bytes. Work changes memory when the host learns that it is done: by
/// waiting for an event after it, by polling such an event as passed, or by
/// synchronize(). Then all work before that event is done, in order, that of
/// other streams included where Stream::wait tied them together. Until then
/// the target holds kPoison and the source is not read. So what is a rare
/// race on a GPU is a wrong result every time here: reading before waiting, a
/// missing Stream::wait, a host buffer that is filled again too early.
/// A target that work before it in the stream still has to use is poisoned
/// after that work: reusing memory in the order of a stream is no mistake.
///
/// As on a GPU the queue is finite: a call that finds kSimMostPending copies
/// and operations of the device not yet done waits for the oldest. The target
/// of a mask, which leaves most of it unchanged, is not poisoned.
///
/// Memory. allocate() takes host memory, poisoned, up to memory_gib.
/// allocate_pinned() takes host memory that is not counted. Work that leaves
/// an allocation of the device, or copies from host to host, is an internal
/// error where it is queued. Work whose buffer is freed before it is done
/// never happens, and a warning is logged.
///
/// Thread-safe: each stream belongs to one thread at a time, but different
/// threads may drive the streams of one device.
std::unique_ptr<Device> open_sim(const DeviceSpec& spec);

/// The same on a clock that others share and that outlives the device;
/// spec.virtual_time is not looked at.
std::unique_ptr<Device> open_sim(const DeviceSpec& spec, Clock& clock);

}  // namespace penstock
