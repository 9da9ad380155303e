#include "python/engine/convert.h"

#include <nanobind/stl/string.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "penstock/base/aligned.h"
#include "python/engine/dlpack.h"
#include "python/engine/function.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

/// A function of a module that is imported when it is first asked for, and
/// kept. Leaked on purpose: it must not be released after Python has ended.
class Imported {
 public:
  Imported(const char* module, const char* name)
      : module_(module), name_(name) {}
  nb::handle operator*() {
    if (!function_.is_valid())
      function_ =
          nb::object(nb::module_::import_(module_).attr(name_)).release();
    return function_;
  }

 private:
  const char* module_;
  const char* name_;
  nb::handle function_;
};

void* current_torch_stream(int device) {
  static Imported current_stream("torch.cuda", "current_stream");
  nb::object stream = (*current_stream)(device);
  return reinterpret_cast<void*>(
      nb::cast<std::uintptr_t>(stream.attr("cuda_stream")));
}

/// Up to 2.0 numpy cannot write to what it makes of DLPack, and the oldest take
/// no bool. __array_interface__ has always done; it takes twice as long.
bool from_dlpack_is_whole() {
  // No initializer of the static: others run during the import, and would wait
  // for it with Python's lock.
  static std::optional<bool> known;
  if (known) return *known;
  auto version =
      nb::cast<std::string>(nb::module_::import_("numpy").attr("__version__"));
  int major = 0, minor = 0;
  std::sscanf(version.c_str(), "%d.%d", &major, &minor);
  known = major > 2 || (major == 2 && minor >= 1);
  return *known;
}

}  // namespace

void wait_on_host(const BatchHandle& held) {
  if (held.batch().arrived()) return;
  GilRelease meanwhile;
  held.wait();
}

namespace {

void refuse_bfloat16(const Field& field) {
  if (field.view().dtype == Dtype::bfloat16)
    throw nb::buffer_error("numpy has no bfloat16: use .torch() or .jax()");
}

/// Waits for the data, and for the copy.
void copy_to_host(const BatchHandle& held, const TensorView& from,
                  std::byte* to) {
  held.wait();
  if (from.bytes() == 0) return;
  if (held.on_host()) {
    std::memcpy(to, from.data, from.bytes());
    return;
  }
  Device& device = held.loader().device();
  std::unique_ptr<Stream> stream = device.make_stream();
  Staging(device, 2).fetch(to, from.data, from.bytes(), *stream);
}

}  // namespace

nb::object to_host(const Field& field) {
  field.held()->fork().check();
  refuse_bfloat16(field);
  TensorView view = field.view();
  std::shared_ptr<std::byte> memory = allocate_aligned(view.bytes());
  if (memory == nullptr) throw std::bad_alloc();
  {
    GilRelease meanwhile;
    copy_to_host(*field.held(), view, memory.get());
  }
  view.data = memory.get();
  return numpy_array(view, std::move(memory));
}

nb::object to_numpy(const Field& field) {
  PythonCallScope call;
  static Imported from_dlpack("numpy", "from_dlpack");
  static Imported asarray("numpy", "asarray");
  if (!field.held()->on_host())
    throw nb::buffer_error(
        "this batch is on a GPU, which numpy cannot read: use .torch() or "
        ".to(\"cpu\"), or .host()");
  refuse_bfloat16(field);
  return (from_dlpack_is_whole() ? *from_dlpack : *asarray)(nb::cast(field));
}

nb::object to_torch(const Field& field) {
  PythonCallScope call;
  static Imported from_dlpack("torch", "from_dlpack");
  if (field.held()->on_host())
    wait_on_host(*field.held());
  else
    field.held()->wait_on(current_torch_stream(field.view().device_id));
  return (*from_dlpack)(dlpack_capsule(field, {}));
}

nb::object to_jax(const Field& field) {
  PythonCallScope call;
  static Imported from_dlpack("jax.dlpack", "from_dlpack");
  return (*from_dlpack)(nb::cast(field));
}

nb::object to_device(const Field& field, nb::handle device) {
  PythonCallScope call;
  return to_torch(field).attr("to")(device);
}

}  // namespace penstock::python
