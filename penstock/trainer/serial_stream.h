#pragma once

#include <memory>
#include <type_traits>

#include "penstock/trainer/borrowed.h"

namespace penstock {

/// Keeps libtorch's work in one order, whichever stream it is queued on: each
/// piece starts after the one before it, and none runs on libtorch's own
/// default stream, which no stream of ours waits for.
///
/// One thread. Only now() and finish() wait for the device. No stream of the
/// caller's is kept; `device` must outlive it. On the cpu there is nothing to
/// order.
class SerialStream {
 public:
  /// `torch` is where libtorch has the device's memory.
  SerialStream(Device& device, at::Device torch);

  /// Runs `work`, which queues on `stream`.
  template <class Work>
  auto on(Stream& stream, Work work) -> decltype(work()) {
    Turn turn(*this, stream);
    return work();
  }
  /// Runs `work` on a stream of its own, and waits until all is done.
  template <class Work>
  auto now(Work work) -> decltype(work()) {
    if constexpr (std::is_void_v<decltype(work())>) {
      on(*own_, work);
      own_->synchronize();
    } else {
      auto result = on(*own_, work);
      own_->synchronize();
      return result;
    }
  }
  /// Waits until all is done: to be called before its tensors are freed. What
  /// fails is logged.
  void finish() noexcept;

 private:
  /// While it lives, work is queued; also when the work throws, what it had
  /// queued comes before the next turn.
  class Turn {
   public:
    Turn(SerialStream& turns, Stream& stream);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SerialStream& turns_;
    Stream& stream_;
    OnStream queued_;
  };

  const at::Device torch_;
  const std::unique_ptr<Stream> own_;
  Event last_;  // the end of the last turn
};

}  // namespace penstock
