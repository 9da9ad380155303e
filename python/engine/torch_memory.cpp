#include "python/engine/torch_memory.h"

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <string>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void refuse(const nb::python_error& raised, int number) {
  throw Error(
      ErrorKind::device,
      {.code = "device.allocator",
       .what = "cannot take memory from torch's allocator",
       .where = "device 'cuda:" + std::to_string(number) + "'",
       .why = raised.what(),
       .next = "check this GPU with torch, or import torch after the loader is "
               "opened, which then allocates its own memory"});
}

/// Memory is taken on a stream that is ours: torch gives what was used on a
/// stream to that stream alone, without waiting for it.
class TorchPool {
 public:
  explicit TorchPool(nb::object cuda) : cuda_(cuda.release()) {}
  ~TorchPool() {
    if (!Py_IsInitialized()) return;
    GilAcquire lock;
    for (auto& [number, stream] : streams_) stream.dec_ref();
    cuda_.dec_ref();
  }
  TorchPool(const TorchPool&) = delete;
  TorchPool& operator=(const TorchPool&) = delete;

  std::byte* take(std::size_t bytes, int number) {
    GilAcquire lock;
    try {
      nb::handle stream = stream_of(number);
      nb::object address =
          cuda_.attr("caching_allocator_alloc")(bytes, number, stream);
      // Torch has few streams, and may have given this one to others too.
      stream.attr("synchronize")();
      return reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(address));
    } catch (const nb::python_error& raised) {
      if (raised.matches(cuda_.attr("OutOfMemoryError"))) return nullptr;
      refuse(raised, number);
    }
  }

  void give_back(std::byte* memory) noexcept {
    if (!Py_IsInitialized()) return;
    GilAcquire lock;
    nb::error_scope raised;  // a batch may go because of what was raised
    try {
      cuda_.attr("caching_allocator_delete")(
          reinterpret_cast<std::uintptr_t>(memory));
    } catch (...) {
      log_exception(LogLevel::warning, "torch's allocator took nothing back");
    }
  }

  std::size_t unused(int number) noexcept {
    if (!Py_IsInitialized()) return 0;
    GilAcquire lock;
    try {
      auto held = nb::cast<std::size_t>(cuda_.attr("memory_reserved")(number));
      auto used = nb::cast<std::size_t>(cuda_.attr("memory_allocated")(number));
      return held > used ? held - used : 0;
    } catch (...) {
      log_exception(LogLevel::warning, "torch does not report its memory");
      return 0;
    }
  }

 private:
  nb::handle stream_of(int number) {
    nb::handle& stream = streams_[number];
    if (!stream.is_valid()) stream = cuda_.attr("Stream")(number).release();
    return stream;
  }

  nb::handle cuda_;
  std::map<int, nb::handle> streams_;  // with Python's lock
};

}  // namespace

DeviceAllocator torch_allocator() {
  nb::object modules = nb::module_::import_("sys").attr("modules");
  nb::object torch = modules.attr("get")("torch");
  if (torch.is_none()) return {};
  nb::object version = nb::getattr(torch, "version", nb::none());
  if (nb::getattr(version, "cuda", nb::none()).is_none()) return {};
  nb::object cuda = torch.attr("cuda");
  if (!nb::hasattr(cuda, "caching_allocator_alloc")) return {};
  auto pool = std::make_shared<TorchPool>(std::move(cuda));
  return {.allocate = [pool](auto bytes,
                             int number) { return pool->take(bytes, number); },
          .free = [pool](std::byte* memory, int) { pool->give_back(memory); },
          .unused = [pool](int number) { return pool->unused(number); }};
}

}  // namespace penstock::python
