// How do load time, memory and epochs grow with the rows?
//
// The quick start's job with 4,030 to 200,000 rows in SQLite, batches of 256,
// on the simulated accelerator at 75 ms per step, in wall time. After: the rows
// are in the device's memory; an epoch is the second of two, of the train side.
// Before: a query per sample on the training thread, with a simulated latency
// of 1 ms per statement; every step is alike, so that some are measured and the
// epoch is computed from their rate.
//
//     bench_sizes [MOST_ROWS]
#include "bench/measure.h"
#include "bench/positions.h"
#include "penstock/run/run.h"

namespace penstock {
namespace {

constexpr std::int64_t kSizes[] = {4030, 10'000, 50'000, 100'000, 200'000};
constexpr double kStepMs = 75;
constexpr std::int64_t kStepsBefore = 13;

Json run(const Positions& data, bool after) {
  Json document = data.job();
  document["source"]["round_trip_ms"] = 1;
  document["loader"]["cache"] = after ? "device" : "none";
  document["loader"]["read"] = after ? "batch" : "per_sample";
  document["device"] = Json(Json::Object{});
  document["device"]["kind"] = "sim";
  document["device"]["step_ms"] = kStepMs;
  document["train"]["epochs"] = 2;
  if (!after) document["train"]["max_steps"] = kStepsBefore;
  return train(parse_job(document), {}).report;
}

Json measure(std::int64_t rows) {
  Positions data(rows);
  Json before = run(data, false), after = run(data, true);
  const Json& second = after.find("epochs")->array().at(1);
  const double train_rows = second.find("samples")->number();
  Json result;
  result["rows"] = rows;
  result["device_bytes"] =
      *after.find("memory")->find("used")->find("device_bytes");
  result["planned_device_bytes"] =
      *after.find("memory")->find("planned")->find("device_bytes");
  result["load_ms"] = *after.find("first_batch_ms");
  result["epoch_seconds"] = *second.find("seconds");
  result["au"] = *after.find("au");
  result["epoch_seconds_before"] =
      train_rows / before.find("samples_per_s")->number();
  result["au_before"] = *before.find("au");
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t most = argument(count, arguments, 1, 200'000);
  Json result = result_of(
      "sizes", "How do load time, memory and epochs grow with the rows?", count,
      arguments);
  result["batch_size"] = 256;
  result["step_ms"] = kStepMs;
  for (std::int64_t rows : kSizes)
    if (rows <= most) result["results"].push_back(measure(rows));
  return finish(result);
}
