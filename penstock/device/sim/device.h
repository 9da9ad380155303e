#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/sync.h"
#include "penstock/device/device.h"
#include "penstock/device/sim/footprint.h"
#include "penstock/device/sim/memory.h"
#include "penstock/device/sim/pending.h"

namespace penstock {

/// The state of a stream of a SimDevice.
struct SimLine {
  std::size_t stream = 0;  ///< its number on the device
  Nanoseconds end{0};      ///< when all work so far is done
  Horizon before;          ///< all work so far, and what that waited for
};

/// The simulated device; sim.h explains it. Its streams call queue_copy() and
/// queue_operation(), which compute times and keep the effect for later.
class SimDevice final : public Device {
 public:
  SimDevice(const DeviceSpec& spec, Clock& clock,
            std::unique_ptr<Clock> own_clock);

  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_pinned(std::size_t bytes) override;
  std::unique_ptr<Stream> make_stream() override;
  DeviceMemory memory() const override;

  void queue_copy(SimLine& line, std::byte* to, const std::byte* from,
                  std::size_t bytes);
  void queue_operation(SimLine& line, DeviceOperation operation);
  /// The time of step `number`; the same whenever it is asked for.
  Nanoseconds step_time(std::uint64_t number) const;
  /// Does what comes before `horizon`. The clock must have reached its end.
  void finish(const Horizon& horizon);
  /// The number of a closed stream can be used again.
  void close_stream(std::size_t stream);

 private:
  using Engine = Nanoseconds;  // when its last copy ends

  Nanoseconds time_to_device(std::size_t bytes) const;
  Extent extent_of(const Footprint::Read& read) const PENSTOCK_REQUIRES(mutex_);
  void wait_for_room();
  void queue(SimLine& line, SimOperation operation, Nanoseconds duration,
             Engine* engine) PENSTOCK_REQUIRES(mutex_);
  void forget(Extent freed) PENSTOCK_REQUIRES(mutex_);

  const DeviceSpec spec_;
  const std::unique_ptr<Clock> own_clock_;
  mutable Mutex mutex_;
  SimMemory memory_ PENSTOCK_GUARDED_BY(mutex_);
  SimMemory pinned_ PENSTOCK_GUARDED_BY(mutex_);
  Pending pending_ PENSTOCK_GUARDED_BY(mutex_);
  Engine to_device_ PENSTOCK_GUARDED_BY(mutex_){0};
  Engine from_device_ PENSTOCK_GUARDED_BY(mutex_){0};
  std::uint64_t operations_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::vector<bool> streams_ PENSTOCK_GUARDED_BY(mutex_);  // true: open
};

}  // namespace penstock
