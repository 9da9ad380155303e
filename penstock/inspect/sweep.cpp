#include "penstock/inspect/sweep.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>

#include "penstock/session/session.h"

namespace penstock {
namespace {

constexpr double kWorthIt = 0.02;   // of the rate
constexpr int kWarmUp = 5;          // steps: the first ones fill the queues
constexpr std::size_t kQueued = 8;  // steps ahead of the device, at most

struct Setting {
  int workers = 0, prefetch = 0;
  std::vector<double> rates = {};
  std::vector<double> utilisations = {};

  double rate() const { return median(rates); }
  double spread() const {
    return std::ranges::max(rates) - std::ranges::min(rates);
  }
  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half]
                                  : (values[half - 1] + values[half]) / 2;
  }
  bool same_as(const Setting& other) const {
    return workers == other.workers && prefetch == other.prefetch;
  }
};

Json setting_json(const Setting& setting) {
  Json json;
  json["loader.workers"] = setting.workers;
  json["loader.prefetch"] = setting.prefetch;
  if (setting.rates.empty()) return json;
  json["rate"]["median"] = setting.rate();
  json["rate"]["min"] = std::ranges::min(setting.rates);
  json["rate"]["max"] = std::ranges::max(setting.rates);
  json["au"] = setting.utilisations.empty()
                   ? Json()
                   : Json(Setting::median(setting.utilisations));
  return json;
}

void check_numbers(const Sweep& sweep) {
  auto wrong = [](const std::vector<int>& numbers) {
    return std::ranges::any_of(numbers, [](int n) { return n < 0; });
  };
  if (sweep.seconds > 0 && sweep.repeats > 0 && !wrong(sweep.workers) &&
      !wrong(sweep.prefetch))
    return;
  throw Error(ErrorKind::request,
              {.code = "bench.numbers",
               .what = "cannot measure with these settings",
               .where = "the seconds, repeats, workers and prefetch",
               .why = "at least one of these numbers is too small",
               .next = "use at least one repeat, more than 0 seconds, and no "
                       "negative numbers"});
}

class Sweeping {
 public:
  Sweeping(const Job& job, const Sweep& sweep)
      : job_(job), sweep_(sweep), device_(device_of_run(job, {})) {
    opened_ = open(loading());
    if (opened_->opened()->facts().scan != nullptr) rows_ = opened_->opened();
    stepper_ = make_stepper(job_, {}, opened_);
  }

  Json run() {
    if (!sweep_.ceiling_only) choose_settings();
    prepare_ceiling();
    measure_all();
    Json json;
    if (!sweep_.ceiling_only) json = settings_json();
    json["ceiling"] = Json();
    if (ceilings_.empty()) return json;
    double ceiling = Setting::median(ceilings_);
    if (!sweep_.ceiling_only) {  // what was reached with an input is no more
      for (const Setting& setting : settings_)
        ceiling = std::max(ceiling, setting.rate());
      json["best_of_ceiling"] = best().rate() / ceiling;
    }
    json["ceiling"] = ceiling;
    return json;
  }

 private:
  Setting loading() const {
    const LoaderOptions options = loader_options(job_, Side::train);
    return {.workers = options.workers, .prefetch = options.prefetch};
  }

  std::shared_ptr<Session> open(const Setting& setting) {
    Job job = job_;
    job.loading.workers = setting.workers;
    job.loading.options.prefetch = setting.prefetch;
    OpenOptions options{.batches = -1, .timed = true, .device = device_};
    if (sweep_.stop != nullptr)  // it lives as long as we do
      options.stop = {std::shared_ptr<void>(), sweep_.stop};
    if (rows_ != nullptr)  // they are read once
      options.rows = [rows = rows_](const Job&, Device&, StopFlag) {
        return rows;
      };
    return open_loader(job, options);
  }

  /// The rows of its batch.
  std::int64_t step(Session& session) {
    std::optional<Batch> batch = session.next();
    if (!batch) return 0;  // there is no last one
    auto kept = std::make_shared<Batch>(std::move(*batch));
    stepper_->step(kept, session.stream(), number_++);
    return kept->rows();
  }

  /// Steps over this batch are the ceiling, where they take time.
  void prepare_ceiling() {
    if (!stepper_->facts().takes_time) return;
    resident_ = std::make_shared<Batch>(*opened_->next());
    for (int i = 0; i < kWarmUp; ++i) step_on_resident();
    wait_for(opened_->stream());
  }

  void step_on_resident() {
    Stream& stream = opened_->stream();
    if (stepper_->facts().has_model)
      stepper_->step(resident_, stream, number_++);
    else
      stream.step(static_cast<std::uint64_t>(number_++));
  }

  /// In each round, since a machine may slow down meanwhile. The host queues
  /// ahead of the device, as measure() and a run do.
  void measure_ceiling() {
    session_.reset();
    Stream& stream = opened_->stream();
    std::int64_t steps = 0;
    std::deque<Event> queued;
    const Nanoseconds begin = device_->clock().now();
    while (seconds(device_->clock().now() - begin) < sweep_.seconds) {
      check_stop();
      step_on_resident();
      (void)stepper_->losses(false);
      queued.push_back(stream.record_untimed());
      if (queued.size() > kQueued) {
        queued.front().wait();
        queued.pop_front();
      }
      ++steps;
    }
    wait_for(stream);
    ceilings_.push_back(static_cast<double>(steps * resident_->rows()) /
                        seconds(device_->clock().now() - begin));
  }

  void wait_for(Stream& stream) {
    (void)stepper_->losses(true);
    stream.synchronize();
  }

  void choose_settings() {
    std::vector<int> workers = sweep_.workers, prefetch = sweep_.prefetch;
    if (workers.empty()) {
      const int cpus = std::max(1, static_cast<int>(read_cpu_limit()));
      workers = {0};
      for (int n = 1; n < cpus; n *= 2) workers.push_back(n);
      workers.push_back(cpus);
    }
    if (prefetch.empty()) prefetch = {0, 2, 4, 8};
    add(loading());  // first: the present ones
    for (int n : workers)
      for (int ahead : prefetch) add({.workers = n, .prefetch = ahead});
  }

  void add(const Setting& setting) {
    auto same = [&](const Setting& other) { return other.same_as(setting); };
    if (std::ranges::none_of(settings_, same)) settings_.push_back(setting);
  }

  // Rounds go over all settings in turn, and not setting by setting: a machine
  // that slows down with time (heat, other work) then slows down all of them
  // alike.
  void measure_all() {
    if (!settings_.empty()) {  // what comes first is slower: not the present
      say("warming up");
      measure(settings_[0]);
      settings_[0].rates.clear();
      settings_[0].utilisations.clear();
    }
    for (int repeat = 0; repeat < sweep_.repeats; ++repeat) {
      const std::string round = "round " + std::to_string(repeat + 1) + " of " +
                                std::to_string(sweep_.repeats) + ": ";
      if (resident_ != nullptr) {
        say(round + "the steps alone, without any input");
        measure_ceiling();
      }
      for (Setting& setting : settings_) {
        say(round + std::to_string(setting.workers) + " workers, " +
            std::to_string(setting.prefetch) + " batches ahead");
        measure(setting);
      }
    }
  }

  void measure(Setting& setting) {
    session_.reset();  // one at a time: their threads would disturb each other
    session_ = open(setting);
    for (int i = 0; i < kWarmUp; ++i) step(*session_);
    session_->pause();
    (void)stepper_->losses(true);
    const StepParts before = session_->clock().total();
    const Nanoseconds begin = device_->clock().now();
    std::int64_t rows = 0;
    while (seconds(device_->clock().now() - begin) < sweep_.seconds) {
      check_stop();
      rows += step(*session_);
    }
    session_->pause();
    (void)stepper_->losses(true);
    const double took = seconds(device_->clock().now() - begin);
    setting.rates.push_back(static_cast<double>(rows) / took);
    const StepParts parts = session_->clock().total() - before;
    if (stepper_->facts().takes_time && parts.steps_take_time())
      setting.utilisations.push_back(parts.utilisation());
  }

  /// The present ones, unless others are better by more than the noise: than
  /// rounds of the same settings differ by.
  const Setting& best() const {
    const Setting* found = &settings_[0];
    for (const Setting& setting : settings_)
      if (setting.rate() > found->rate() && is_better(setting))
        found = &setting;
    return *found;
  }

  bool is_better(const Setting& setting) const {
    const Setting& present = settings_[0];
    return setting.rate() - present.rate() >
           std::max(kWorthIt * present.rate(),
                    present.spread() + setting.spread());
  }

  Json settings_json() const {
    Json json;
    json["settings"] = Json::Array{};
    for (const Setting& setting : settings_)
      json["settings"].push_back(setting_json(setting));
    json["present"] = 0;
    json["best"] = static_cast<std::int64_t>(&best() - settings_.data());
    json["gain"] = best().rate() / settings_[0].rate() - 1;
    json["rounds"] = sweep_.repeats;
    json["cumulative"] = Json::Array{};
    auto add = [&](const char* what, auto allowed) {
      double rate = 0;
      for (const Setting& setting : settings_)
        if (allowed(setting)) rate = std::max(rate, setting.rate());
      if (rate == 0) return;
      Json entry;
      entry["what"] = what;
      entry["rate"] = rate;
      json["cumulative"].push_back(std::move(entry));
    };
    add("on the training thread",
        [](const Setting& s) { return s.workers == 0 && s.prefetch == 0; });
    add("with workers, at most 2 batches ahead",
        [](const Setting& s) { return s.prefetch <= 2; });
    add("with more batches ahead", [](const Setting&) { return true; });
    return json;
  }

  void say(const std::string& line) const {
    if (sweep_.progress) sweep_.progress(line);
  }
  void check_stop() const { end_if_stopped(sweep_.stop); }

  const Job& job_;
  const Sweep& sweep_;
  std::shared_ptr<Device> device_;
  // Opened the rows, which hear its end: it lives as long as they are used. Its
  // threads wait, for nobody takes its batches.
  std::shared_ptr<Session> opened_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<const Dataset> rows_;  // null: read by position
  std::unique_ptr<Stepper> stepper_;
  std::int64_t number_ = 0;
  std::vector<Setting> settings_;
  std::shared_ptr<Batch> resident_;  // null: the steps take no time
  std::vector<double> ceilings_;     // samples per second, of each round
};

}  // namespace

Json sweep_settings(const Job& job, const Sweep& sweep) {
  check_numbers(sweep);
  return Sweeping(job, sweep).run();
}

}  // namespace penstock
