// What is the utilisation of an accelerator that is fed by Penstock, and what
// was it before?
//
// The quick start's job, 4,030 rows in SQLite, batches of 256, on the simulated
// accelerator in wall time. The same meter judges all: Penstock with its rows
// in the device's memory and in RAM; and a query per sample on the training
// thread, alone and with a simulated latency of 1 ms per statement, in which a
// database is that far away. From the end of the first step to the end of the
// last, epoch seams inside.
//
//     bench_au_positions [SECONDS [REPEATS]]    seconds of steps per run
#include <cmath>

#include "bench/measure.h"
#include "bench/positions.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  const char* cache;
  const char* read;
  double round_trip_ms;
  bool after;  ///< Penstock, which has a target to reach
};
const Workload kWorkloads[] = {
    {"penstock, resident on the device", "device", "batch", 0, true},
    {"penstock, in RAM", "ram", "batch", 0, true},
    {"a query per sample", "none", "per_sample", 0, false},
    {"a query per sample, 1 ms per statement", "none", "per_sample", 1, false},
};

struct StepTime {
  double ms;
  double must_reach;
};
const StepTime kStepTimes[] = {{75, 0.99}, {5, 0.97}};

constexpr std::int64_t kRows = 4030;
constexpr std::int64_t kFewestSteps = 13;  // more than an epoch

Job job_of(const Workload& work, const StepTime& step, double seconds,
           const Positions& data) {
  Json document = data.job();
  document["source"]["round_trip_ms"] = work.round_trip_ms;
  document["loader"]["cache"] = work.cache;
  document["loader"]["read"] = work.read;
  document["device"] = Json(Json::Object{});
  document["device"]["kind"] = "sim";
  document["device"]["step_ms"] = step.ms;
  auto steps = static_cast<std::int64_t>(std::ceil(1e3 * seconds / step.ms));
  if (!work.after) steps = kFewestSteps;  // slow, and every step is alike
  document["train"]["max_steps"] = std::max(kFewestSteps, steps);
  document["train"]["epochs"] = std::max(kFewestSteps, steps);
  return parse_job(document);
}

Json measure(const Workload& work, const StepTime& step, double seconds,
             int repeats, const Positions& data) {
  Job job = job_of(work, step, seconds, data);
  Repeats au, rate, first;
  Json parts, steps;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Json report = train(job, {}).report;
    au.add(report.find("au")->number());
    rate.add(report.find("samples_per_s")->number());
    first.add(report.find("first_batch_ms")->number());
    parts = *report.find("parts");
    steps = *report.find("steps");
  }
  Json result;
  result["workload"] = work.name;
  result["step_ms"] = step.ms;
  result["round_trip_ms"] = work.round_trip_ms;
  result["steps"] = steps;
  result["au"] = au.json();
  result["samples_per_s"] = rate.json();
  result["first_batch_ms"] = first.json();
  result["parts_of_the_last_run"] = parts;
  if (work.after)
    result["must_reach"] = "au >= " + Json(step.must_reach).dump();
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  auto seconds = static_cast<double>(argument(count, arguments, 1, 5));
  auto repeats = static_cast<int>(argument(count, arguments, 2, 5));
  Json result =
      result_of("au_positions",
                "What is the utilisation of an accelerator that is fed by "
                "Penstock, and what was it before?",
                count, arguments);
  result["rows"] = kRows;
  result["batch_size"] = 256;
  Positions data(kRows);
  for (const StepTime& step : kStepTimes)
    for (const Workload& work : kWorkloads)
      result["results"].push_back(measure(work, step, seconds, repeats, data));
  return finish(result);
}
