#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/cuda_standin/standin.h"

// Streams are threads: each piece of work waits a little, at random, so that
// what is not ordered by an event comes in any order. Assumed beyond the
// manual:
// - A copy to the device from memory that is not pinned reads it before the
// call
//   returns, one to such memory has ended then (Runtime API "API
//   synchronization behavior", Memcpy, Asynchronous).
// - Work that is queued on a stream of another device than the thread's current
//   one: copies and events are possible, kernels are not (Programming Guide
//   3.2.9.3 "Stream and Event Behavior"). An event is recorded on a stream of
//   its own device alone.
// - Handles 0 and 1 are the legacy default stream, 2 the thread's own, of the
//   current device ("Stream synchronization behavior").
// - While any thread captures with cudaStreamCaptureModeGlobal, calls that
//   allocate, free, wait or ask for an event fail in every thread that has not
//   exchanged its mode, and the capture is invalid ("cudaStreamBeginCapture",
//   "cudaThreadExchangeStreamCaptureMode").

namespace cuda_standin {
namespace {

using Clock = std::chrono::steady_clock;

/// A point in a stream's work.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool passed = false;
  Clock::time_point time;

  void pass() {
    std::lock_guard lock(mutex);
    passed = true;
    time = Clock::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return passed; });
  }
  bool has_passed() {
    std::lock_guard lock(mutex);
    return passed;
  }
};

std::atomic<int> broken{cudaSuccess};  // by work: no device works any more

class Stream {
 public:
  Stream(int device, bool blocking, unsigned seed)
      : device(device), blocking(blocking), random_(seed) {
    thread_ = std::thread([this] { work(); });
  }
  ~Stream() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void add(std::function<cudaError_t()> work) {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  /// A point behind all that is queued.
  std::shared_ptr<Point> end() {
    auto point = std::make_shared<Point>();
    add([point] {
      point->pass();
      return cudaSuccess;
    });
    return point;
  }

  const int device;
  const bool blocking;
  // Of a capture; under lock_of_all().
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::size_t nodes = 0;

 private:
  void work() {
    for (;;) {
      std::function<cudaError_t()> next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !work_.empty(); });
        if (work_.empty()) return;
        next = std::move(work_.front());
        work_.pop_front();
      }
      int most = machine().most_delay_us;
      if (most > 0 && random_() % 4 == 0)
        std::this_thread::sleep_for(
            std::chrono::microseconds(random_() % static_cast<unsigned>(most)));
      if (cudaError_t error = next()) broken = error;
    }
  }

  std::minstd_rand random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<cudaError_t()>> work_;
  bool ends_ = false;
  std::thread thread_;
};

struct Streams {
  std::map<cudaStream_t, std::unique_ptr<Stream>> made;
  std::vector<std::unique_ptr<Stream>> retired;   // they end what is queued
  std::map<int, std::unique_ptr<Stream>> legacy;  // by device
  std::map<std::pair<std::thread::id, int>, std::unique_ptr<Stream>> own;
  unsigned seed = 0;

  template <class Act>
  void each(Act act) {
    for (auto& [handle, stream] : made) act(*stream);
    for (auto& stream : retired) act(*stream);
    for (auto& [device, stream] : legacy) act(*stream);
    for (auto& [thread, stream] : own) act(*stream);
  }
};

Streams& streams() {
  static auto* streams = new Streams;
  return *streams;
}

struct Event {
  int device;
  bool timed;
  bool captured = false;
  std::shared_ptr<Point> point = nullptr;  // never recorded
};

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
thread_local std::set<Stream*> captured_here;

Stream* default_stream(std::unique_ptr<Stream>& stream) {
  if (stream == nullptr)
    stream = std::make_unique<Stream>(current_device(), true, ++streams().seed);
  return stream.get();
}

/// Null if it is unknown. Under lock_of_all().
Stream* find(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy)
    return default_stream(streams().legacy[current_device()]);
  if (handle == cudaStreamPerThread)
    return default_stream(
        streams().own[{std::this_thread::get_id(), current_device()}]);
  auto found = streams().made.find(handle);
  return found == streams().made.end() ? nullptr : found->second.get();
}

Event* event_of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }

/// Work of the legacy stream waits for that of blocking ones, and these for it.
void wait_for_others(Stream& stream) {
  if (!stream.blocking) return;
  auto legacy = streams().legacy.find(stream.device);
  if (legacy == streams().legacy.end()) return;
  auto wait_for = [&](Stream& other) {
    if (&other == &stream) return;
    stream.add([point = other.end()] {
      point->wait();
      return cudaSuccess;
    });
  };
  if (&stream != legacy->second.get()) return wait_for(*legacy->second);
  streams().each([&](Stream& other) {
    if (other.blocking && other.device == stream.device) wait_for(other);
  });
}

cudaError_t copy_now(void* to, const void* from, std::size_t bytes) {
  std::lock_guard lock(lock_of_all());  // nothing is freed meanwhile
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

void stop_streams() {
  Streams all;
  {
    std::lock_guard lock(lock_of_all());
    std::swap(all, streams());
    streams().seed = all.seed;
    broken = cudaSuccess;
  }
}

void synchronize_device(int device) {
  std::vector<std::shared_ptr<Point>> ends;
  {
    std::lock_guard lock(lock_of_all());
    streams().each([&](Stream& stream) {
      if (stream.device == device) ends.push_back(stream.end());
    });
  }
  for (auto& end : ends) end->wait();
}

cudaError_t check_capture() {
  std::lock_guard lock(lock_of_all());
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t result = cudaSuccess;
  streams().each([&](Stream& stream) {
    if (stream.capture != cudaStreamCaptureStatusActive) return;
    bool concerned = stream.mode == cudaStreamCaptureModeGlobal ||
                     captured_here.count(&stream) > 0;
    if (stream.mode == cudaStreamCaptureModeRelaxed || !concerned) return;
    stream.capture = cudaStreamCaptureStatusInvalidated;
    result = cudaErrorStreamCaptureUnsupported;
  });
  return result;
}

cudaError_t queue(cudaStream_t handle, std::function<cudaError_t()> work) {
  std::lock_guard lock(lock_of_all());
  if (int error = broken) return static_cast<cudaError_t>(error);
  Stream* stream = find(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->capture == cudaStreamCaptureStatusInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (stream->capture == cudaStreamCaptureStatusActive) {
    ++stream->nodes;
    return cudaSuccess;
  }
  wait_for_others(*stream);
  stream->add(std::move(work));
  return cudaSuccess;
}

bool is_of_current_device(cudaStream_t handle) {
  std::lock_guard lock(lock_of_all());
  Stream* stream = find(handle);
  return stream != nullptr && stream->device == current_device();
}

}  // namespace cuda_standin

using namespace cuda_standin;

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                            cudaMemcpyKind, cudaStream_t stream) {
  if (cudaError_t error = begin_call("cudaMemcpyAsync")) return error;
  Where there = where_is(to, bytes), here = where_is(from, bytes);
  if (there == Where::nowhere || here == Where::nowhere) count_pageable_copy();
  if (here == Where::nowhere) {
    auto staged = std::make_shared<std::vector<std::byte>>(bytes);
    std::memcpy(staged->data(), from, bytes);
    return ended(
        queue(stream, [=] { return copy_now(to, staged->data(), bytes); }));
  }
  cudaError_t error = ended(queue(stream, [=] {
    bool gone =
        where_is(from, bytes) == Where::nowhere ||
        (there != Where::nowhere && where_is(to, bytes) == Where::nowhere);
    return gone ? cudaErrorIllegalAddress : copy_now(to, from, bytes);
  }));
  if (error != cudaSuccess || there != Where::nowhere) return error;
  return cudaStreamSynchronize(stream);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes,
                            cudaStream_t stream) {
  if (cudaError_t error = begin_call("cudaMemsetAsync")) return error;
  return ended(queue(stream, [=] {
    if (where_is(to, bytes) != Where::device) return cudaErrorIllegalAddress;
    std::memset(to, value, bytes);
    return cudaSuccess;
  }));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (cudaError_t error = begin_unsafe_call("cudaStreamCreateWithFlags"))
    return error;
  std::lock_guard lock(lock_of_all());
  auto made = std::make_unique<Stream>(
      current_device(), (flags & cudaStreamNonBlocking) == 0, ++streams().seed);
  *stream = reinterpret_cast<cudaStream_t>(made.get());
  streams().made[*stream] = std::move(made);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (cudaError_t error = begin_call("cudaStreamDestroy")) return error;
  std::lock_guard lock(lock_of_all());
  auto found = streams().made.find(stream);
  if (found == streams().made.end())
    return ended(cudaErrorInvalidResourceHandle);
  streams().retired.push_back(std::move(found->second));
  streams().made.erase(found);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  if (cudaError_t error = begin_unsafe_call("cudaStreamSynchronize"))
    return error;
  std::shared_ptr<Point> end;
  {
    std::lock_guard lock(lock_of_all());
    Stream* stream = find(handle);
    if (stream == nullptr) return ended(cudaErrorInvalidResourceHandle);
    if (stream->capture != cudaStreamCaptureStatusNone) {
      stream->capture = cudaStreamCaptureStatusInvalidated;
      return ended(cudaErrorStreamCaptureUnsupported);
    }
    end = stream->end();
  }
  end->wait();
  return ended(static_cast<cudaError_t>(broken.load()));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  if (cudaError_t error = begin_call("cudaStreamWaitEvent")) return error;
  std::lock_guard lock(lock_of_all());
  std::shared_ptr<Point> point = event_of(event)->point;
  return ended(queue(stream, [point] {
    if (point != nullptr) point->wait();
    return cudaSuccess;
  }));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                  cudaStreamCaptureStatus* status) {
  std::lock_guard lock(lock_of_all());
  Stream* stream = find(handle);
  if (stream == nullptr) return ended(cudaErrorInvalidResourceHandle);
  *status = stream->capture;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle,
                                   cudaStreamCaptureMode mode) {
  if (cudaError_t error = begin_call("cudaStreamBeginCapture")) return error;
  std::lock_guard lock(lock_of_all());
  Stream* stream = find(handle);
  if (stream == nullptr || handle == nullptr || handle == cudaStreamLegacy ||
      stream->capture != cudaStreamCaptureStatusNone)
    return ended(cudaErrorStreamCaptureUnsupported);
  stream->capture = cudaStreamCaptureStatusActive;
  stream->mode = mode;
  stream->nodes = 0;
  captured_here.insert(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  if (cudaError_t error = begin_call("cudaStreamEndCapture")) return error;
  std::lock_guard lock(lock_of_all());
  Stream* stream = find(handle);
  if (stream == nullptr) return ended(cudaErrorInvalidResourceHandle);
  bool valid = stream->capture == cudaStreamCaptureStatusActive;
  stream->capture = cudaStreamCaptureStatusNone;
  captured_here.erase(stream);
  *graph = nullptr;
  if (!valid) return ended(cudaErrorStreamCaptureInvalidated);
  *graph = reinterpret_cast<cudaGraph_t>(new std::size_t(stream->nodes));
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*,
                              std::size_t* count) {
  *count = *reinterpret_cast<std::size_t*>(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<std::size_t*>(graph);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (cudaError_t error = begin_unsafe_call("cudaEventCreateWithFlags"))
    return error;
  *event = reinterpret_cast<cudaEvent_t>(
      new Event{.device = current_device(),
                .timed = (flags & cudaEventDisableTiming) == 0});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (cudaError_t error = begin_call("cudaEventDestroy")) return error;
  delete event_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  if (cudaError_t error = begin_call("cudaEventRecord")) return error;
  std::lock_guard lock(lock_of_all());
  Stream* stream = find(handle);
  if (stream == nullptr || stream->device != event_of(event)->device)
    return ended(cudaErrorInvalidResourceHandle);
  event_of(event)->captured = stream->capture == cudaStreamCaptureStatusActive;
  auto point = std::make_shared<Point>();
  event_of(event)->point = point;
  return ended(queue(handle, [point] {
    point->pass();
    return cudaSuccess;
  }));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (cudaError_t error = begin_unsafe_call("cudaEventQuery")) return error;
  std::lock_guard lock(lock_of_all());
  if (event_of(event)->captured) return ended(cudaErrorCapturedEvent);
  if (int error = broken) return ended(static_cast<cudaError_t>(error));
  const std::shared_ptr<Point>& point = event_of(event)->point;
  return point == nullptr || point->has_passed() ? cudaSuccess
                                                 : ended(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (cudaError_t error = begin_unsafe_call("cudaEventSynchronize"))
    return error;
  std::shared_ptr<Point> point;
  {
    std::lock_guard lock(lock_of_all());
    if (event_of(event)->captured) return ended(cudaErrorCapturedEvent);
    point = event_of(event)->point;
  }
  if (point != nullptr) point->wait();
  return ended(static_cast<cudaError_t>(broken.load()));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  if (cudaError_t error = begin_call("cudaEventElapsedTime")) return error;
  std::lock_guard lock(lock_of_all());
  for (cudaEvent_t event : {from, to}) {
    const Event& one = *event_of(event);
    if (!one.timed || one.point == nullptr ||
        one.device != event_of(from)->device)
      return ended(cudaErrorInvalidResourceHandle);
    if (!one.point->has_passed()) return ended(cudaErrorNotReady);
  }
  *ms = std::chrono::duration<float, std::milli>(event_of(to)->point->time -
                                                 event_of(from)->point->time)
            .count();
  return cudaSuccess;
}
