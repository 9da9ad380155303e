#include "penstock/trainer/ranks/c10d_group.h"
#include "penstock/trainer/trainer.h"

extern "C" const penstock::TrainerPlugin* penstock_trainer_part() {
  static constexpr penstock::TrainerPlugin kPart{
      .make_stepper = penstock::make_stepper,
      .make_predictor = penstock::make_predictor,
      .build_info = penstock::build_info,
      .cuda_unavailable_reason = penstock::cuda_unavailable_reason,
      .open_ranks = penstock::open_ranks};
  return &kPart;
}
