#include "penstock/base/dlpack.h"

#include <utility>

#include "penstock/base/error.h"

namespace penstock {
namespace {

// What outlives the call: the consumer calls the deleter once, on any thread,
// and until then the shape and the owner must stay where they are.
struct Export {
  DlManagedTensor managed;
  Shape shape;
  std::shared_ptr<const void> owner;
};

}  // namespace

DlType dl_type_of(Dtype dtype) {
  auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case Dtype::int8:
    case Dtype::int16:
    case Dtype::int32:
    case Dtype::int64:
      return {0, bits};
    case Dtype::uint8:
    case Dtype::uint16:
    case Dtype::uint32:
    case Dtype::uint64:
      return {1, bits};
    case Dtype::float16:
    case Dtype::float32:
    case Dtype::float64:
      return {2, bits};
    case Dtype::bfloat16:
      return {4, bits};
    case Dtype::boolean:
      return {6, bits};
  }
  fail_assertion("dtype", "every dtype has a type of DLPack", __FILE__,
                 __LINE__);
}

bool dtype_from(DlType type, Dtype& dtype) {
  for (std::size_t i = 0; i < kDtypes; ++i) {
    if (dl_type_of(static_cast<Dtype>(i)) != type) continue;
    dtype = static_cast<Dtype>(i);
    return true;
  }
  return false;
}

DlManagedTensor* to_dlpack(const TensorView& view,
                           std::shared_ptr<const void> owner) {
  DlType type = dl_type_of(view.dtype);
  auto* made = new Export{{}, view.shape, std::move(owner)};
  made->managed = {
      .tensor = {.data = view.data,
                 .device_type = static_cast<std::int32_t>(view.memory),
                 .device_id = view.device_id,
                 .dimensions = static_cast<std::int32_t>(made->shape.size()),
                 .code = type.code,
                 .bits = type.bits,
                 .lanes = 1,
                 .shape = made->shape.data(),
                 .strides = nullptr,
                 .byte_offset = 0},
      .context = made,
      .deleter = [](DlManagedTensor* self) {
        delete static_cast<Export*>(self->context);
      }};
  return &made->managed;
}

}  // namespace penstock
