// Do checkpoints hold up the steps, and does a run whose time goes to
// checkpoints or validation say so?
//
// Rows of the quick start in RAM, on the simulated accelerator in wall time,
// and a model that only holds bytes. First a checkpoint of 100 MB every 150
// steps of 20 ms: for how long the loop waits for each, from the second one on.
// Then runs of 150 steps whose checkpoints, or whose validation, take about
// half of the time: what the verdict names, and its predicted gain beside what
// the change gains in the next run.
//
//     bench_outside [RUNS]    of each kind, with their changes
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "bench/measure.h"
#include "bench/positions.h"
#include "penstock/report/report.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

constexpr std::int64_t kRows = 4030;
constexpr double kStepMs = 20;

/// A model of so many bytes, whose look at a held-out batch takes a while.
class HeldBytes final : public Stepper {
 public:
  HeldBytes(std::size_t megabytes, double look_ms)
      : Stepper({.has_model = true}),
        weights_(megabytes * 1'000'000, std::byte{1}),
        look_ms_(look_ms) {}
  void step(const std::shared_ptr<Batch>&, Stream&, std::int64_t) override {
    ++untold_;
  }
  std::vector<double> losses(bool) override {
    return std::vector<double>(std::exchange(untold_, std::size_t{0}));
  }
  void validate(const std::shared_ptr<Batch>&, Stream&) override {
    std::this_thread::sleep_for(from_seconds(look_ms_ / 1e3));
  }
  /// How long each checkpoint's copy took, which the loop waits for.
  const std::vector<double>& copies_ms() const { return copies_ms_; }

 private:
  ModelState state_in(std::vector<std::byte> memory) override {
    ModelState state{
        .tensors = {}, .memory = std::move(memory), .json = Json::Object{}};
    copies_ms_.push_back(1e3 * wall_seconds([&] {
                           state.memory.resize(weights_.size());
                           std::memcpy(state.memory.data(), weights_.data(),
                                       weights_.size());
                         }));
    state.tensors.push_back(
        {"w",
         {.data = state.memory.data(),
          .dtype = Dtype::uint8,
          .shape = {static_cast<std::int64_t>(weights_.size())}}});
    return state;
  }

  const std::vector<std::byte> weights_;
  const double look_ms_;
  std::vector<double> copies_ms_;
  std::size_t untold_ = 0;
};

struct Workload {
  const char* name;
  std::size_t megabytes;
  double look_ms;
  double val;  ///< of the rows
  std::int64_t steps;
  Json every;  ///< train.checkpoint_every_steps
  std::int64_t batch = 256;
};

Job job_of(const Workload& work, const Json* action, const Positions& data) {
  Json document = data.job();
  document["loader"]["cache"] = "ram";
  document["loader"]["batch_size"] = work.batch;
  document["split"] = Json(Json::Object{});
  document["split"]["train"] = 1 - work.val;
  document["split"]["val"] = work.val;
  document["device"] = Json(Json::Object{});
  document["device"]["kind"] = "sim";
  document["device"]["step_ms"] = kStepMs;
  document["train"]["max_steps"] = work.steps;
  document["train"]["epochs"] = work.steps;
  if (!work.every.is_null())
    document["train"]["checkpoint_every_steps"] = work.every;
  if (action != nullptr)
    apply_setting(document, action->find("knob")->string() + "=" +
                                action->find("to")->dump());
  return parse_job(document);
}

struct Measured {
  Json report;
  std::vector<double> copies_ms;
};

Measured run_of(const Workload& work, const Json* action,
                const Positions& data) {
  const Nanoseconds started = wall_clock().now();
  const Job job = job_of(work, action, data);
  const std::shared_ptr<Session> session =
      open_loader(job, {.timed = true, .epochs_listed = SIZE_MAX});
  session->counted().started = started;
  SavedState state;
  note_rows(state, job, session->rows(), session->order());
  RunFolder folder(real_files(), job.output.dir,
                   run_json(job, session->device(), ""));
  Checkpoints checkpoints(folder);
  Quarantine quarantine(folder);
  const TrainOptions options;
  HeldBytes stepper(work.megabytes, work.look_ms);
  Loop loop({.job = job,
             .options = options,
             .session = *session,
             .folder = folder,
             .stepper = stepper,
             .checkpoints = checkpoints,
             .quarantine = quarantine,
             .state = state},
            work.steps);
  loop.run();
  Measured measured{report_of(*session), stepper.copies_ms()};
  session->close();
  folder.discard();
  return measured;
}

Json report_of(const Workload& work, const Json* action,
               const Positions& data) {
  return run_of(work, action, data).report;
}

double number(const Json& report, std::initializer_list<const char*> keys) {
  const Json* at = &report;
  for (const char* key : keys) at = at->find(key);
  return at->number();
}

/// Milliseconds in which so many bytes are copied in memory: the floor.
double copy_ms(std::size_t bytes) {
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  return 1e3 *
         wall_seconds([&] { std::memcpy(to.data(), from.data(), bytes); });
}

/// How long the loop waits for each checkpoint after the first: for the copy
/// that is written beside the next steps.
Json waits(const Positions& data, int repeats) {
  const Workload work{"", 100, 0, 0, 750, 150, 256};
  Repeats wait, write, due, floor;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Measured run = run_of(work, nullptr, data);
    for (std::size_t i = 1; i < run.copies_ms.size(); ++i)
      wait.add(run.copies_ms[i]);
    write.add(1e3 * number(run.report, {"checkpoints", "write_s"}) /
              number(run.report, {"checkpoints", "saved"}));
    floor.add(copy_ms(100'000'000));
    due.add(number(run.report, {"checkpoints", "waited"}));
  }
  Json json;
  json["workload"] = "100 MB every 150 steps of 20 ms";
  json["loop_waits_ms"] = wait.json();
  json["a_copy_of_100_mb_takes_ms"] = floor.json();
  json["written_in_ms"] = write.json();
  json["due_before_the_last_was_written"] = due.json();
  json["must_reach"] = "loop_waits_ms <= 20, one step";
  return json;
}

/// Steps between two checkpoints that hide half of what one is written in.
std::int64_t steps_for_half(Workload work, const Positions& data) {
  work.steps = 60;
  const Json report = report_of(work, nullptr, data);
  const double each_ms = 1e3 * number(report, {"checkpoints", "write_s"}) /
                         number(report, {"checkpoints", "saved"});
  return std::max<std::int64_t>(1, std::llround(each_ms / kStepMs / 2));
}

Json campaign(const Workload& work, int runs, const Positions& data) {
  int named = 0, close = 0;
  Repeats part, predicted, measured, apart, explained;
  for (int run = 0; run < runs; ++run) {
    const Json before = report_of(work, nullptr, data);
    const Json& verdict = *before.find("verdict");
    const double wall = number(before, {"wall_s"});
    part.add(number(before, {"outside", work.name}) / wall);
    double sum = 0;
    for (const auto& [name, seconds] : before.find("outside")->object())
      sum += seconds.number();
    double steps = 0;
    for (const Json& epoch : before.find("epochs")->array())
      if (epoch.find("seconds")->is_number())
        steps += epoch.find("seconds")->number();
    explained.add((sum + steps) / wall);
    const Json::Array& actions = verdict.find("actions")->array();
    if (verdict.find("limit")->string() != "outside" || actions.empty())
      continue;
    ++named;
    const Json after = report_of(work, &actions[0], data);
    const double gain = actions[0].find("predicted_gain")->number(),
                 got = wall / number(after, {"wall_s"}) - 1;
    predicted.add(gain);
    measured.add(got);
    const double off = (1 + gain) / (1 + got) - 1;
    apart.add(off);
    close += std::abs(off) <= 0.15 ? 1 : 0;
  }
  Json json;
  json["workload"] = std::string("half in outside.") + work.name;
  json["checkpoint_every_steps"] = work.every;
  json["share_of_the_wall_time"] = part.json();
  json["wall_time_explained"] = explained.json();
  json["named"] = std::int64_t{named};
  json["within_15_percent"] = std::int64_t{close};
  json["runs"] = std::int64_t{runs};
  if (named > 0) {
    json["predicted_gain"] = predicted.json();
    json["measured_gain"] = measured.json();
    json["predicted_over_measured"] = apart.json();
  }
  json["must_reach"] = "named in all runs, the gain within 15 %";
  return json;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  const auto runs = static_cast<int>(argument(count, arguments, 1, 20));
  Json result = result_of("outside",
                          "Do checkpoints hold up the steps, and does a run "
                          "whose time goes to checkpoints or validation say "
                          "so?",
                          count, arguments);
  result["rows"] = kRows;
  result["step_ms"] = kStepMs;
  const Positions data(kRows);
  result["results"].push_back(waits(data, std::min(runs, 3)));
  Workload saving{"checkpoint_s", 48, 0, 0, 150, 5, 256};
  saving.every = steps_for_half(saving, data);
  result["results"].push_back(campaign(saving, runs, data));
  // 31 steps of 20 ms and 31 looks of 20 ms an epoch.
  result["results"].push_back(
      campaign({"validation_s", 1, 20, 0.5, 150, 150, 64}, runs, data));
  return finish(result);
}
