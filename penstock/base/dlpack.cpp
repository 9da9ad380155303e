#include "penstock/base/dlpack.h"

#include <utility>

namespace penstock {
namespace {

struct Export {
  DlManagedTensor managed;
  Shape shape;
  std::shared_ptr<const void> owner;
};

}  // namespace

DlManagedTensor* to_dlpack(const TensorView& view,
                           std::shared_ptr<const void> owner) {
  auto* made = new Export{{}, view.shape, std::move(owner)};
  made->managed = {
      .tensor = {.data = view.data,
                 .device_type = static_cast<std::int32_t>(view.memory),
                 .device_id = view.device_id,
                 .dimensions = static_cast<std::int32_t>(made->shape.size()),
                 .code = view.dtype == Dtype::int64 ? std::uint8_t{0}
                                                    : std::uint8_t{2},
                 .bits = static_cast<std::uint8_t>(8 * size_of(view.dtype)),
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
