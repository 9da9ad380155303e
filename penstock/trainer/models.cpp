#include "penstock/models/models.h"

#include "penstock/trainer/threads.h"
#include "penstock/trainer/torch_error.h"
#include "penstock/trainer/trainer.h"

namespace penstock {

#define KIND(name)                                                     \
  std::unique_ptr<Stepper> make_##name##_stepper(                      \
      const ModelSpec& spec, const FittedFields& data, Device& device, \
      std::int64_t steps);
PENSTOCK_TRAINER_KINDS(KIND)
#undef KIND

std::unique_ptr<Stepper> make_stepper(const ModelSpec& spec,
                                      const FittedFields& data, Device& device,
                                      std::int64_t steps) {
  return in_torch("making the model", [&]() -> std::unique_ptr<Stepper> {
    start_threads(threads_of(spec));
#define KIND(name)        \
  if (spec.kind == #name) \
    return make_##name##_stepper(spec, data, device, steps);
    PENSTOCK_TRAINER_KINDS(KIND)
#undef KIND
    PENSTOCK_ASSERT(false, "a model is of one of the kinds");
    return nullptr;
  });
}

}  // namespace penstock
