#include "penstock/trainer/trainer.h"

extern "C" const penstock::TrainerPart* penstock_trainer_part() {
  static constexpr penstock::TrainerPart kPart{
      .version = penstock::TrainerPart::kVersion,
      .make_stepper = penstock::make_stepper,
      .described = penstock::described,
      .why_no_cuda = penstock::why_no_cuda};
  return &kPart;
}
