#include "penstock/session/progress_reporter.h"

#include <cstdio>

#include "penstock/base/shown.h"

namespace penstock {

ProgressReporter::ProgressReporter(const TrainListener& listener,
                                   StepClock& clock, const Device& device,
                                   Whole whole)
    : ProgressReporter(listener, clock, device, whole, wall_clock(),
                       listener.progress ? gpu_sensor(device) : nullptr) {}

ProgressReporter::ProgressReporter(const TrainListener& listener,
                                   StepClock& clock, const Device& device,
                                   Whole whole, const Clock& time,
                                   std::unique_ptr<GpuSensor> sensor)
    : listener_(listener),
      clock_(clock),
      device_(device),
      whole_(whole),
      time_(time),
      sensor_(std::move(sensor)) {
  if (sensor_ != nullptr) gpu_.emplace();
}

void ProgressReporter::next_window(Nanoseconds now) {
  last_window_ = clock_.total() - window_;
  window_ = clock_.total();
  HostUse use = read_host_use();
  cpus_used_ = cpus_used(window_use_, use, now - window_start_);
  if (sensor_ != nullptr) gpu_ = sensor_->read();
  window_use_ = use;
  window_start_ = now;
}

void ProgressReporter::step(Position at, std::optional<double> loss) {
  ++steps_;
  at_ = at;
  loss_ = loss;
  Nanoseconds now = time_.now();
  if (now - reported_ >= std::chrono::milliseconds(100)) report(now);
}

void ProgressReporter::pause() {
  if (steps_ > 0) report(time_.now());
}

void ProgressReporter::report(Nanoseconds now) {
  if (!listener_.progress) return;
  reported_ = now;
  if (now - window_start_ > std::chrono::seconds(2)) next_window(now);
  Progress progress{
      .epoch = at_.epoch,
      .epochs = whole_.epochs,
      .step = at_.step + 1,
      .steps = whole_.steps_per_epoch,
      .elapsed_s = seconds(now - start_),
      .steps_taken = steps_,
      .steps_left = whole_.steps_left < 0 ? -1 : whole_.steps_left - steps_,
      .loss = loss_,
      .parts = last_window_.steps > 0 ? last_window_ : clock_.total() - before_,
      .row = whole_.row,
      .limits = limits_,
      .use = read_host_use(),
      .cpus_used = cpus_used_,
      .device = read_device_use(device_),
      .gpu = gpu_};
  if (!cpus_used_)
    progress.cpus_used =
        cpus_used(window_use_, progress.use, now - window_start_);
  listener_.progress(progress);
}

void ProgressReporter::epoch(const EpochNumbers& epoch) {
  if (listener_.note) listener_.note(epoch_summary(epoch));
}

void warn_if_starved(const Snapshot& run, const TrainListener& listener) {
  double au = run.parts.utilisation();
  if (!listener.note || !(au < 0.3)) return;
  Verdict verdict = diagnose(run);
  if (verdict.limit == Limit::unknown) return;
  std::string line = "warning: the accelerator is busy only " +
                     shown_percent(au, 1) + " of the time: " + verdict.cause;
  if (!verdict.actions.empty()) {
    const Action& best = verdict.actions.front();
    char gain[32];
    std::snprintf(gain, sizeof(gain), "%.3g x faster", 1 + best.predicted_gain);
    line += "; set " + best.knob + " to " + best.to.dump() +
            " (predicted: " + gain + ", costs " + best.cost + ")";
  }
  listener.note(line);
}

}  // namespace penstock
