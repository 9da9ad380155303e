#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// Readings of one number: their mean and the highest.
struct Readings {
  double sum = 0;
  double max = -std::numeric_limits<double>::infinity();
  std::int64_t count = 0;

  /// What was not measured is no reading.
  template <class Number>
  void add(const std::optional<Number>& number) {
    if (!number) return;
    sum += static_cast<double>(*number);
    max = std::max(max, static_cast<double>(*number));
    ++count;
  }
  Readings& operator+=(const Readings& more);
};

/// What the process and the device used over some time, as far as known.
struct UseOverTime {
  double cpu_s = 0;                 ///< processor time of the process...
  double over_s = 0;                ///< ...within this time; 0: not measured
  std::optional<double> most_cpus;  ///< over half a second or more
  Readings resident_bytes;          ///< of the process
  Readings device_bytes;            ///< of all users of the device
  Readings gpu, temperature_c, power_w;

  UseOverTime& operator+=(const UseOverTime& more);
  /// {"cpus": {"mean", "max"}, "resident_bytes": ..., ...}; what was not
  /// measured is absent.
  Json json() const;
};

/// How a run went over time, and what it used in each epoch.
struct TimelineNumbers {
  struct Point {
    double end_s = 0;        ///< since the first step had ended
    std::int64_t epoch = 0;  ///< of its last step
    StepParts parts;         ///< of the steps that are known to have ended
    Nanoseconds outside{0};  ///< in validation and checkpoints
    Readings loss;
    UseOverTime use;
  };
  std::vector<Point> points;
  std::map<std::int64_t, UseOverTime> epochs;

  /// Columns of one length: "seconds" (the end of each point), "epoch",
  /// "steps", "samples", the seconds of each part ("compute", "wait_data",
  /// ...) and outside of the steps ("outside"), and means of what was measured
  /// at all ("loss", "cpus", "resident_bytes", ...; null where a point has no
  /// reading).
  Json json() const;
};

/// Keeps the time line of a loop while it takes its steps: a point a second,
/// and where that would be more than kMost, points are merged in pairs, so that
/// each covers twice the time. What the process and the device use is read at
/// most once a second, by the thread that takes the steps. One thread.
class Timeline {
 public:
  explicit Timeline(const Device& device);
  /// By clocks and with a sensor of the caller's; null: the device is no GPU.
  /// `steps`: which the steps are timed by; `host`: for all else.
  Timeline(const Device& device, const Clock& steps, const Clock& host,
           std::unique_ptr<GpuSensor> sensor);

  /// A step has ended, for the host at least. `outside`: the time in validation
  /// and checkpoints, of the whole run up to now.
  void step(std::int64_t epoch, StepClock& clock, Nanoseconds outside = {});
  /// From here on `listener` gets each point when it is over, before it is
  /// merged with others.
  void on_point(std::function<void(const TimelineNumbers::Point&)> listener) {
    listener_ = std::move(listener);
  }
  /// The steps run on this GPU, which is not the device: its driver is asked.
  void ask_of(std::unique_ptr<GpuSensor> gpu) { sensor_ = std::move(gpu); }
  /// The loss of a step became known.
  void loss(double loss) { open_.loss.add(std::optional(loss)); }
  /// What an epoch used is not needed any more.
  void forget(std::int64_t epoch) { epochs_.erase(epoch); }

  /// Mean utilisation of the GPU as its driver reports it (GpuUse), since the
  /// first step; missing before it was read three times.
  std::optional<double> gpu_busy() const;
  /// All up to now; it continues unchanged.
  TimelineNumbers numbers(StepClock& clock, Nanoseconds outside = {}) const;

  static constexpr std::size_t kMost = 512;
  static constexpr Nanoseconds kPeriod = std::chrono::seconds(1);

 private:
  struct Lap {  // what was used of the processors, up to when
    std::optional<double> cpu_s;
    Nanoseconds at{0};
  };
  void begin(std::int64_t epoch, Nanoseconds now);
  static UseOverTime use_since(Lap& lap, const Lap& now);
  UseOverTime read(Nanoseconds now, Lap& lap) const;
  void add(const UseOverTime& use);
  void close(Nanoseconds now, const StepParts& total, Nanoseconds outside);
  void merge();

  const Device& device_;
  const Clock& steps_;
  const Clock& host_;
  std::unique_ptr<GpuSensor> sensor_;
  bool begun_ = false;
  Nanoseconds start_{0}, point_start_{0}, read_{0};
  Nanoseconds period_ = kPeriod;
  StepParts before_;  // of the points that are closed
  Nanoseconds outside_before_{0};
  TimelineNumbers::Point open_;
  Lap lap_;
  Readings gpu_;
  std::vector<TimelineNumbers::Point> points_;
  std::map<std::int64_t, UseOverTime> epochs_;
  std::function<void(const TimelineNumbers::Point&)> listener_;
};

}  // namespace penstock
