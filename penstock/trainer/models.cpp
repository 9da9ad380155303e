#include "penstock/models/models.h"

#include "penstock/trainer/model_stepper.h"
#include "penstock/trainer/threads.h"
#include "penstock/trainer/torch_error.h"
#include "penstock/trainer/torch_memory.h"
#include "penstock/trainer/trainer.h"

namespace penstock {

#define KIND(name)                                             \
  std::unique_ptr<Model> make_##name(const ModelSpec& spec,    \
                                     const FittedFields& data, \
                                     const at::TensorOptions& options);
PENSTOCK_TRAINER_KINDS(KIND)
#undef KIND

namespace {

MakeModel maker_of(const ModelSpec& spec) {
#define KIND(name) \
  if (spec.kind == #name) return make_##name;
  PENSTOCK_TRAINER_KINDS(KIND)
#undef KIND
  PENSTOCK_ASSERT(false, "a model is of one of the kinds");
  return nullptr;
}

}  // namespace

std::unique_ptr<Stepper> make_stepper(const ModelSpec& spec,
                                      const FittedFields& data, Device& device,
                                      std::int64_t steps) {
  return in_torch("making the model", [&] {
    start_threads(threads_of(spec));
    count_host_tensors();
    return make_model_stepper(spec, data, device, steps, maker_of(spec));
  });
}

std::unique_ptr<Predictor> make_predictor(const ModelSpec& spec,
                                          const FittedFields& data,
                                          Device& device) {
  return in_torch("making the model", [&] {
    start_threads(threads_of(spec));
    count_host_tensors();
    return make_model_predictor(spec, data, device, maker_of(spec));
  });
}

}  // namespace penstock
