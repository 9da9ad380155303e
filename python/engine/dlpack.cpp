#include "python/engine/dlpack.h"

#include <cstring>

#include "penstock/base/aligned.h"
#include "penstock/base/dlpack.h"

namespace penstock::python {
namespace {

/// DLPack's DLManagedTensorVersioned (dlpack.h 1.0), which base's DlTensor is a
/// part of.
struct VersionedTensor {
  std::uint32_t major = 1, minor = 0;
  void* context = nullptr;
  void (*deleter)(VersionedTensor* self) = nullptr;
  std::uint64_t flags = 0;
  DlTensor tensor{};
};
static_assert(sizeof(void*) != 8 || sizeof(VersionedTensor) == 80);

constexpr std::uint64_t kIsCopied = 2;

template <class Managed>
constexpr const char* kName = nullptr;
template <>
constexpr const char* kName<DlManagedTensor> = "dltensor";
template <>
constexpr const char* kName<VersionedTensor> = "dltensor_versioned";

/// A capsule that was not taken calls the deleter itself. The library that
/// takes it renames it.
template <class Managed>
nb::object capsule_of(Managed* managed) {
  PyObject* made =
      PyCapsule_New(managed, kName<Managed>, [](PyObject* capsule) {
        if (!PyCapsule_IsValid(capsule, kName<Managed>)) return;
        auto* left = static_cast<Managed*>(
            PyCapsule_GetPointer(capsule, kName<Managed>));
        left->deleter(left);
      });
  if (made != nullptr) return nb::steal(made);
  managed->deleter(managed);
  throw nb::python_error();
}

VersionedTensor* versioned(DlManagedTensor* plain, bool copied) {
  auto* made = new VersionedTensor;
  made->context = plain;
  made->flags = copied ? kIsCopied : 0;
  made->tensor = plain->tensor;
  made->deleter = [](VersionedTensor* self) {
    auto* inner = static_cast<DlManagedTensor*>(self->context);
    inner->deleter(inner);
    delete self;
  };
  return made;
}

/// The bytes in memory of their own; `view` then shows that.
std::shared_ptr<const void> copied(TensorView& view) {
  std::shared_ptr<std::byte> bytes = allocate_aligned(view.bytes());
  if (bytes == nullptr) throw std::bad_alloc();
  if (view.bytes() > 0) std::memcpy(bytes.get(), view.data, view.bytes());
  view.data = bytes.get();
  return bytes;
}

}  // namespace

std::pair<int, int> dlpack_device(const Field& field) {
  if (field.held()->on_host()) return {static_cast<int>(MemoryKind::cpu), 0};
  return {static_cast<int>(field.view().memory), field.view().device_id};
}

nb::object dlpack_capsule(const Field& field, const DlpackRequest& request) {
  if (request.device && *request.device != dlpack_device(field))
    throw nb::buffer_error(
        "DLPack cannot move a field to another device: use .to(device)");
  TensorView view = field.view();
  std::shared_ptr<const void> owner = field.held();
  if (field.held()->on_host()) {
    view.memory = MemoryKind::cpu;
    view.device_id = 0;
  }
  if (request.copy) {
    if (!field.held()->on_host())
      throw nb::buffer_error("a copy on a GPU is made by the library itself");
    owner = copied(view);
  }
  DlManagedTensor* plain = to_dlpack(view, std::move(owner));
  if (request.major_version < 1) return capsule_of(plain);
  return capsule_of(versioned(plain, request.copy));
}

}  // namespace penstock::python
