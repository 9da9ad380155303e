#include "penstock/session/timeline.h"

#include <cmath>
#include <functional>
#include <utility>

#include "penstock/base/kernel_files.h"

namespace penstock {
namespace {

using Point = TimelineNumbers::Point;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// To a whole number of 1 / `of_one`: without the digits that nobody measured.
double rounded(double number, double of_one) {
  return std::round(number * of_one) / of_one;
}

double mean_of(const Readings& readings) {
  return readings.count > 0 ? readings.sum / static_cast<double>(readings.count)
                            : kUnknown;
}

double cpus_of(const UseOverTime& use) {
  return use.over_s > 0 ? use.cpu_s / use.over_s : kUnknown;
}

/// A column by its name, and a number of each point; NaN: not known.
struct Measured {
  const char* name;
  double of_one;  // what is shown is a multiple of 1 / this; 0: all digits
  std::function<double(const Point&)> number;
};

const std::vector<Measured>& measured_columns() {
  static const std::vector<Measured> all = {
      {"loss", 0, [](const Point& p) { return mean_of(p.loss); }},
      {"cpus", 1e3, [](const Point& p) { return cpus_of(p.use); }},
      {"resident_bytes", 1,
       [](const Point& p) { return mean_of(p.use.resident_bytes); }},
      {"device_bytes", 1,
       [](const Point& p) { return mean_of(p.use.device_bytes); }},
      {"gpu_utilisation", 1e3,
       [](const Point& p) { return mean_of(p.use.gpu); }},
      {"temperature_c", 10,
       [](const Point& p) { return mean_of(p.use.temperature_c); }},
      {"power_w", 10, [](const Point& p) { return mean_of(p.use.power_w); }}};
  return all;
}

Json column_of(const std::vector<Point>& points, const Measured& column) {
  Json values{Json::Array{}};
  for (const Point& point : points) {
    const double number = column.number(point);
    if (!std::isfinite(number))
      values.push_back({});
    else if (column.of_one == 1)
      values.push_back(static_cast<std::int64_t>(std::llround(number)));
    else
      values.push_back(column.of_one > 0 ? rounded(number, column.of_one)
                                         : number);
  }
  return values;
}

}  // namespace

Readings& Readings::operator+=(const Readings& more) {
  sum += more.sum;
  max = std::max(max, more.max);
  count += more.count;
  return *this;
}

UseOverTime& UseOverTime::operator+=(const UseOverTime& more) {
  cpu_s += more.cpu_s;
  over_s += more.over_s;
  if (more.most_cpus)
    most_cpus = std::max(most_cpus.value_or(0.0), *more.most_cpus);
  resident_bytes += more.resident_bytes;
  device_bytes += more.device_bytes;
  gpu += more.gpu;
  temperature_c += more.temperature_c;
  power_w += more.power_w;
  return *this;
}

Json UseOverTime::json() const {
  Json json{Json::Object{}};
  auto show = [&](const char* name, double mean, double max, double of_one) {
    if (!std::isfinite(mean)) return;
    json[name]["mean"] = rounded(mean, of_one);
    json[name]["max"] = rounded(max, of_one);
  };
  const double cpus = cpus_of(*this);
  show("cpus", cpus, std::max(cpus, most_cpus.value_or(cpus)), 1e3);
  auto readings = [&](const char* name, const Readings& of, double of_one) {
    show(name, mean_of(of), of.max, of_one);
  };
  readings("resident_bytes", resident_bytes, 1);
  readings("device_bytes", device_bytes, 1);
  readings("gpu_utilisation", gpu, 1e3);
  readings("temperature_c", temperature_c, 10);
  readings("power_w", power_w, 10);
  return json;
}

Json TimelineNumbers::json() const {
  Json json{Json::Object{}};
  auto add = [&](const char* name, double of_one, auto number) {
    json[name] = column_of(points, {name, of_one, number});
  };
  add("seconds", 1e6, [](const Point& p) { return p.end_s; });
  add("epoch", 1, [](const Point& p) { return double(p.epoch); });
  add("steps", 1, [](const Point& p) { return double(p.parts.steps); });
  add("samples", 1, [](const Point& p) { return double(p.parts.samples); });
  auto part = [&](const char* name, Nanoseconds StepParts::*of) {
    add(name, 1e6, [of](const Point& p) { return seconds(p.parts.*of); });
  };
  part("compute", &StepParts::compute);
  part("wait_data", &StepParts::wait_data);
  part("wait_copy", &StepParts::wait_copy);
  part("host", &StepParts::host);
  part("sync", &StepParts::sync);
  add("outside", 1e6, [](const Point& p) { return seconds(p.outside); });
  for (const Measured& column : measured_columns()) {
    const bool measured = std::ranges::any_of(points, [&](const Point& point) {
      return std::isfinite(column.number(point));
    });
    if (measured) json[column.name] = column_of(points, column);
  }
  return json;
}

Timeline::Timeline(const Device& device)
    : Timeline(device, device.clock(), wall_clock(), gpu_sensor(device)) {}

Timeline::Timeline(const Device& device, const Clock& steps, const Clock& host,
                   std::unique_ptr<GpuSensor> sensor)
    : device_(device), steps_(steps), host_(host), sensor_(std::move(sensor)) {}

void Timeline::begin(std::int64_t epoch, Nanoseconds now) {
  begun_ = true;
  start_ = point_start_ = steps_.now();
  open_.epoch = epoch;
  lap_ = {cpu_seconds_used(), now};
  read_ = now;
  UseOverTime use = read(now, lap_);
  use.gpu = {};  // of the time before the first step
  add(use);
}

void Timeline::step(std::int64_t epoch, StepClock& clock, Nanoseconds outside) {
  const Nanoseconds now = host_.now();
  if (!begun_) {
    before_ = clock.total();
    outside_before_ = outside;
    return begin(epoch, now);
  }
  if (now - read_ >= kPeriod) {
    read_ = now;
    add(read(now, lap_));
  } else if (epoch != open_.epoch) {
    add(use_since(lap_, {cpu_seconds_used(), now}));
  }
  open_.epoch = epoch;
  const Nanoseconds at = &steps_ == &host_ ? now : steps_.now();
  if (at - point_start_ < period_) return;
  close(at, clock.total(), outside);
  if (points_.size() == kMost) merge();
}

/// The processors since the last lap. The seam between two epochs is that of
/// the first.
UseOverTime Timeline::use_since(Lap& lap, const Lap& now) {
  constexpr double kLongEnough = 0.5;  // for a highest number
  const Lap last = std::exchange(lap, now);
  UseOverTime use;
  const double time = seconds(now.at - last.at);
  if (!now.cpu_s || !last.cpu_s || time <= 0) return use;
  use.cpu_s = *now.cpu_s - *last.cpu_s;
  use.over_s = time;
  if (time >= kLongEnough) use.most_cpus = use.cpu_s / time;
  return use;
}

UseOverTime Timeline::read(Nanoseconds now, Lap& lap) const {
  UseOverTime use = use_since(lap, {cpu_seconds_used(), now});
  // One file alone: read_host_use() takes several times as long.
  if (auto kib = number_in("/proc/self/status", "VmRSS:"))
    use.resident_bytes.add(std::optional(1024 * *kib));
  use.device_bytes.add(read_device_use(device_).used);
  if (sensor_ == nullptr) return use;
  const GpuUse gpu = sensor_->read();
  use.gpu.add(gpu.utilisation);
  use.temperature_c.add(gpu.temperature_c);
  use.power_w.add(gpu.power_w);
  return use;
}

void Timeline::add(const UseOverTime& use) {
  open_.use += use;
  epochs_[open_.epoch] += use;
  gpu_ += use.gpu;
}

std::optional<double> Timeline::gpu_busy() const {
  if (gpu_.count < 3) return std::nullopt;
  return gpu_.sum / static_cast<double>(gpu_.count);
}

void Timeline::close(Nanoseconds now, const StepParts& total,
                     Nanoseconds outside) {
  open_.end_s = seconds(now - start_);
  open_.parts = total - before_;
  open_.outside = outside - outside_before_;
  before_ = total;
  outside_before_ = outside;
  const std::int64_t epoch = open_.epoch;
  points_.push_back(std::exchange(open_, {.epoch = epoch}));
  point_start_ = now;
  if (listener_) listener_(points_.back());
}

// When kMost points are there, neighbours are joined in pairs and the period
// doubles. So memory is bounded for runs of any length, each point covers about
// the same time, and the sums over all points never change.
void Timeline::merge() {
  for (std::size_t i = 0; i < kMost / 2; ++i) {
    Point& first = points_[2 * i];
    const Point& second = points_[2 * i + 1];
    first.end_s = second.end_s;
    first.epoch = second.epoch;
    first.parts += second.parts;
    first.outside += second.outside;
    first.loss += second.loss;
    first.use += second.use;
    if (i > 0) points_[i] = first;
  }
  points_.resize(kMost / 2);
  period_ *= 2;
}

TimelineNumbers Timeline::numbers(StepClock& clock, Nanoseconds outside) const {
  TimelineNumbers numbers{.points = points_, .epochs = epochs_};
  if (!begun_) return numbers;
  Point last = open_;
  last.parts = clock.total() - before_;
  last.outside = outside - outside_before_;
  last.end_s = seconds(steps_.now() - start_);
  Lap lap = lap_;
  const UseOverTime use = read(host_.now(), lap);
  last.use += use;
  numbers.epochs[last.epoch] += use;
  numbers.points.push_back(std::move(last));
  return numbers;
}

}  // namespace penstock
