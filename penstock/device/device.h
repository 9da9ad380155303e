#pragma once

/// Where tensors are and work is queued: memory, streams and events of a
/// device.
///
///     std::unique_ptr<Device> device = open_device({.kind = "cpu"});
///     std::unique_ptr<Stream> stream = device->make_stream();
///     Buffer memory = device->allocate(bytes.size());
///     stream->copy(memory.data(), bytes.data(), bytes.size());
///     Event copied = stream->record();
///     copied.wait();

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/held_memory.h"
#include "penstock/base/json.h"
#include "penstock/base/tensor.h"
#include "penstock/device/operation.h"

namespace penstock {

/// Memory of a device (or pinned host memory), freed when destroyed. Move-only.
/// Must not outlive its device.
class Buffer {
 public:
  /// How a device takes its memory back.
  using Release = std::function<void(std::byte*, std::size_t)>;

  Buffer() = default;
  Buffer(std::byte* data, std::size_t size, MemoryKind kind, Release release)
      : data_(data), size_(size), kind_(kind), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer old(std::move(other));
    swap(old);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr && release_) release_(data_, size_);
  }

  /// An address on the device: read and write it only through a stream
  /// (on cpu it is ordinary memory).
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  MemoryKind kind() const { return kind_; }
  /// The same memory, charged to what it is held for (see held_memory()).
  Buffer held_for(HeldFor owner) &&;
  /// Gives up the memory, which the caller must free.
  void release() {
    charge_ = {};
    release_ = nullptr;
    data_ = nullptr;
    size_ = 0;
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(kind_, other.kind_);
    std::swap(release_, other.release_);
    std::swap(charge_, other.charge_);
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  MemoryKind kind_ = MemoryKind::cpu;
  Release release_;
  MemoryCharge charge_;
};

/// A point in the work of a stream. A small value; copies are the same point. A
/// default event has passed already.
class Event {
 public:
  class State {
   public:
    virtual ~State() = default;
    /// As those of Event, from any threads at once: once true, always true.
    virtual bool passed() = 0;
    /// Returns when passed() is true, at once where it is.
    virtual void wait() = 0;
    /// Waits; always the same.
    virtual Nanoseconds time() = 0;
  };

  Event() = default;
  /// An event of a device that is never behind: it passed at `time`.
  explicit Event(Nanoseconds time) : time_(time) {}
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// True when the work before it is done; never waits.
  bool passed() const { return state_ == nullptr || state_->passed(); }
  /// Waits until it has passed.
  void wait() const {
    if (state_ != nullptr) state_->wait();
  }
  /// When it passed, on the clock of the device (Device::clock). Waits.
  Nanoseconds time() const { return state_ ? state_->time() : time_; }
  State* state() const { return state_.get(); }
  const std::shared_ptr<State>& shared_state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
  Nanoseconds time_{0};
};

/// A queue of work on a device: each call queues and returns; the work is done
/// in the order of the calls. Belongs to one thread at a time. The memory that
/// a call names must live until an event recorded after it has passed.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Copies between host (pinned for speed) and device, either way.
  virtual void copy(std::byte* to, const std::byte* from,
                    std::size_t bytes) = 0;
  /// Copies what the operation shows of the host's memory but does not name as
  /// pinned: it need not outlive the call.
  virtual void run(DeviceOperation operation) = 0;
  /// An event that passes when all that was queued here before it is done.
  Event record() { return recorded(true); }
  /// An event that is only waited for: cheaper on a GPU, and asking it for its
  /// time is an internal error (on cpu it has one).
  Event record_untimed() { return recorded(false); }
  /// Later work of this stream starts after `event`; the host does not wait.
  virtual void wait(const Event& event) = 0;
  /// A simulated step of a model: takes the device's step time. Step `number`
  /// fixes the draw. No time on cpu and cuda.
  virtual void step(std::uint64_t number) = 0;
  /// Waits until all queued work is done.
  virtual void synchronize() = 0;
  /// Its work is being recorded into a CUDA graph, not done.
  virtual bool capturing() const { return false; }
  /// The cudaStream_t of a stream on cuda, null for its default stream; null
  /// on other devices.
  void* handle() const { return handle_; }
  /// A HostKernel can be run: on cpu and sim.
  bool runs_host_code() const { return runs_host_code_; }

 protected:
  explicit Stream(void* handle = nullptr, bool runs_host_code = false)
      : handle_(handle), runs_host_code_(runs_host_code) {}

 private:
  virtual Event recorded(bool timed) = 0;

  void* handle_;
  bool runs_host_code_;
};

/// Free and total memory in bytes.
struct DeviceMemory {
  std::size_t free = 0;
  std::size_t total = 0;
};

/// What is known of a device once it is open.
struct DeviceFacts {
  std::string name;  ///< for people: the model of a GPU, say
  MemoryKind memory_kind = MemoryKind::cpu;  ///< that allocate() gives
  /// Which one it is, where there are several: TensorView::device_id.
  std::int32_t number = 0;
  /// The PCI bus id of a GPU ("0000:41:00.0"), by which other programs and
  /// libraries know it. Empty for a device that is not hardware.
  std::string pci_bus_id = {};
  /// On which events tell their time. Lives as long as the device.
  Clock* clock = &wall_clock();
};

/// A place where tensors are and work is queued. Thread-safe; must outlive its
/// buffers, streams and events.
class Device {
 public:
  explicit Device(DeviceFacts facts) : facts_(std::move(facts)) {}
  virtual ~Device() = default;

  const std::string& name() const { return facts_.name; }
  MemoryKind memory_kind() const { return facts_.memory_kind; }
  std::int32_t number() const { return facts_.number; }
  const std::string& pci_bus_id() const { return facts_.pci_bus_id; }
  Clock& clock() const { return *facts_.clock; }

  /// Throws Error(out_of_memory) with what was asked and what is left.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Host memory from which copies are asynchronous.
  virtual Buffer allocate_pinned(std::size_t bytes) = 0;
  /// A stream of its own, whose work is ordered with no other's but by events.
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// A stream of another library: work that is queued here is ordered with the
  /// work there. On cuda `handle` is a cudaStream_t (null: the default stream)
  /// that must outlive what is returned. Other devices have only their own
  /// streams: null gives one of those, anything else is an Error(request).
  virtual std::unique_ptr<Stream> borrow_stream(void* handle);
  /// Looks for what decodes pictures here (Resize), which is else looked for
  /// when the first one is decoded. Throws Error(device), device.no_nvjpeg.
  virtual void load_decoders() {}
  /// Now: other programs take and give it too.
  virtual DeviceMemory memory() const = 0;

 private:
  DeviceFacts facts_;
};

/// Pinned memory for copies between a device and memory that is not pinned: a
/// few pieces, used in turn, so that one is written or read while another is
/// copied, and only a caller that comes round to its piece too early waits.
///
/// One thread. Its destructor waits for the copies.
class Staging {
 public:
  Staging(Device& device, std::size_t pieces)
      : device_(device), pieces_(pieces) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Memory to write to, until send().
  std::byte* room(std::size_t bytes);
  /// Queues the copy of the first bytes of what room() gave last to `to`, on
  /// the device.
  void send(std::byte* to, std::size_t bytes, Stream& stream);
  /// Copies `from`, on the device, to `to`, where all of it is when the call
  /// returns.
  void fetch(std::byte* to, const std::byte* from, std::size_t bytes,
             Stream& stream);
  /// As much as fetch() copies at once.
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

 private:
  struct Piece {
    Buffer memory;  // of the largest that was wanted
    Event copied;
  };

  Device& device_;
  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
};

/// The `device` section of a job.
struct DeviceSpec {
  std::string kind = "auto";  ///< auto, cpu, sim, cuda (gpu means cuda)
  /// cuda: which GPU. Missing: the thread's current one, such as torch's, where
  /// that is not 0; else LOCAL_RANK; else 0.
  std::optional<int> number = {};
  double step_ms = 0;            ///< sim: time of one step
  double step_deviation_ms = 0;  ///< sim: drawn per step, normal, at least 0
  double copy_gb_s = 12;         ///< sim: bandwidth of its copy engine
  double memory_gib = 8;         ///< sim: its memory limit
  bool virtual_time = false;     ///< sim: time passes only when waited for
};

/// Checks a `device` section: a name or an object.
DeviceSpec parse_device_spec(const Json& section, const std::string& path);
/// The JSON Schema of that section.
Json device_schema();

/// Where a GPU's memory comes from, instead of CUDA itself: the pool of a
/// library that uses the same GPU, so that neither starves while the other
/// keeps what it does not use. Called on any thread, and as long as the device
/// is there.
struct DeviceAllocator {
  /// At least so many bytes of GPU `number`, aligned as cudaMalloc() does,
  /// which no work that is queued there uses. Null where it has no more. May
  /// throw.
  std::function<std::byte*(std::size_t bytes, int number)> allocate = {};
  /// No work that is queued uses it any more. Must not throw.
  std::function<void(std::byte* memory, int number)> free = {};
  /// What the pool holds of the GPU's memory and nobody uses, in bytes: it
  /// counts as free. May be missing. Must not throw.
  std::function<std::size_t(int number)> unused = {};
};

/// `auto` takes cuda when this build and machine have it, else cpu, which is
/// logged; it never picks sim. A GPU that is there and fails is an error with
/// `auto` too. Throws Error(device) when the requested device is not there.
/// `allocator`: of a GPU's memory; other devices do not use it.
std::unique_ptr<Device> open_device(const DeviceSpec& spec,
                                    const DeviceAllocator& allocator = {});

/// The definition of correct for Stream::run, on host memory.
void run_on_host(const DeviceOperation& operation);

}  // namespace penstock
