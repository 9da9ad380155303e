#include "penstock/trainer/autocast.h"

#include <ATen/autocast_mode.h>

namespace penstock {

Autocast::Autocast(at::Device device, Dtype precision)
    : device_(device.type()), on_(precision != Dtype::float32) {
  if (!on_) return;
  was_on_ = at::autocast::is_autocast_enabled(device_);
  was_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_dtype(
      device_, precision == Dtype::float16 ? at::kHalf : at::kBFloat16);
  at::autocast::set_autocast_enabled(device_, true);
}

// The state of before is restored, not switched off: an Autocast may be within
// another one, as in a part that is computed again.
Autocast::~Autocast() {
  if (!on_) return;
  at::autocast::set_autocast_enabled(device_, was_on_);
  at::autocast::set_autocast_dtype(device_, was_);
  // The weights that were cast are those of this step.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace penstock
