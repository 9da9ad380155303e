#include "penstock/session/trainer_plugin.h"

// A trainer for trainer_plugin_test.cpp: everything it does is throw. Built
// once as it should be, and once with the note of another build.
extern "C" const penstock::TrainerPlugin* penstock_trainer_part() {
  using namespace penstock;
  static constexpr TrainerPlugin kPart{
      .make_stepper = [](const ModelSpec& spec, const FittedFields&, Device&,
                         std::int64_t) -> std::unique_ptr<Stepper> {
        throw Error(ErrorKind::request, {.code = "test.thrown",
                                         .what = "a test part was used",
                                         .where = spec.kind});
      },
      .make_predictor = [](const ModelSpec& spec, const FittedFields&,
                           Device&) -> std::unique_ptr<Predictor> {
        throw Error(ErrorKind::request, {.code = "test.thrown",
                                         .what = "a test part was used",
                                         .where = spec.kind});
      },
      .build_info = [] { return std::string("a test part"); },
      .cuda_unavailable_reason =
          [] { return std::string("a test part has no CUDA"); },
      .open_ranks = [](const RankPlace& place) -> std::unique_ptr<RankGroup> {
        throw Error(ErrorKind::request, {.code = "test.thrown",
                                         .what = "a test part was used",
                                         .where = place.master});
      }};
  return &kPart;
}
