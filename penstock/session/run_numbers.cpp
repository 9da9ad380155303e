#include "penstock/session/run_numbers.h"

#include <utility>

namespace penstock {

std::optional<OutsideTime> RunNumbers::outside_of(const Job& job) const {
  if (job.device.virtual_time || read < started) return std::nullopt;
  OutsideTime time{.wall_s = seconds(read - started), .steps = snapshot.parts};
  time.checkpoints = {.waited_s = seconds(checkpoints),
                      .times = saved.times,
                      .copying_s = seconds(saved.copying),
                      .writing_s = seconds(saved.writing),
                      .every = job.training.checkpoint_every_steps};
  time.validations = {.seconds = seconds(validation),
                      .times = validations,
                      .every = job.training.validate_every_epochs};
  if (steps > 0) time.epoch_start_s = seconds(first_step - asked);
  return time;
}

void RunNumbers::leave_out_compute() {
  auto leave_out = [](StepParts& parts) {
    parts.host += std::exchange(parts.compute, Nanoseconds(0));
  };
  spilled.reset();  // steps that became slower
  leave_out(snapshot.parts);
  snapshot.spilled.reset();
  if (tuning && tuning->settled) {
    leave_out(tuning->settled->parts);
    tuning->settled->spilled.reset();
  }
  for (auto& [number, epoch] : epochs) leave_out(epoch.parts);
  for (TimelineNumbers::Point& point : timeline.points) leave_out(point.parts);
  for (WorstStep& step : worst_steps) leave_out(step.parts);
}

}  // namespace penstock
