#include "penstock/trainer/serial_stream.h"

#include "penstock/base/log.h"

namespace penstock {
namespace {

/// For where nothing may be thrown.
template <class Work>
void logged(Work work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    log(LogLevel::warning, error.what());
  }
}

/// The stream, after `before` there.
Stream& behind(Stream& stream, const Event& before) {
  stream.wait(before);
  return stream;
}

}  // namespace

SerialStream::SerialStream(Device& device, at::Device torch)
    : torch_(torch), own_(device.make_stream()) {}

// The members' order matters: first the stream waits for the last turn, then it
// becomes libtorch's current one. The destructor records the event while it
// still is, so the event stands for all that was queued.
SerialStream::Turn::Turn(SerialStream& turns, Stream& stream)
    : turns_(turns),
      stream_(behind(stream, turns.last_)),
      queued_(turns.torch_, stream) {}

SerialStream::Turn::~Turn() {
  logged([&] { turns_.last_ = stream_.record_untimed(); });
}

void SerialStream::finish() noexcept {
  logged([&] { last_.wait(); });
}

}  // namespace penstock
