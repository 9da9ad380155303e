// Does the verdict name the limiting stage of real threads, too?
//
// Runs described pipelines (see `penstock sim`) by the wall clock: each worker
// is a thread that sleeps for its service time, queues are those of the engine,
// the steps are those of the simulated accelerator, and the meters are read as
// in a run. Prints what `penstock sim --json` prints.
// bench/verdict_campaign.py --threads compares the two.
//
//     bench_pipeline_threads FILE    a list of pipelines, delivery "completion"
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>

#include "penstock/advisor/advisor.h"
#include "penstock/base/base.h"
#include "penstock/base/random.h"
#include "penstock/exec/exec.h"
#include "penstock/report/report.h"

namespace penstock {
namespace {

using Batches = Queue<std::int64_t>;

/// A gamma of shape 1 / cv^2, which is a whole number for what is drawn here:
/// a sum of exponentials.
double service_ms(const PipelineStage& stage, std::uint64_t seed,
                  std::int64_t batch) {
  if (stage.cv == 0) return stage.service_ms;
  Random random(seed, 0, static_cast<std::uint64_t>(batch), 0);
  const auto shape = std::max(1L, std::lround(1 / (stage.cv * stage.cv)));
  double sum = 0;
  for (long i = 0; i < shape; ++i) sum -= std::log(1 - random.uniform());
  return stage.service_ms * sum / static_cast<double>(shape);
}

class Threads {
 public:
  explicit Threads(const Pipeline& pipeline) : pipeline_(pipeline) {
    queues_.push_back(
        std::make_unique<Batches>(static_cast<std::size_t>(pipeline.batches)));
    for (std::int64_t batch = 0; batch < pipeline.batches; ++batch)
      queues_.back()->push(batch);
    queues_.back()->close();
    for (std::size_t i = 0; i < pipeline.stages.size(); ++i) begin_stage(i);
  }

  Snapshot run() {
    std::unique_ptr<Device> device =
        open_device({.kind = "sim", .step_ms = pipeline_.step_ms});
    std::unique_ptr<Stream> stream = device->make_stream();
    StepClock clock(device->clock());
    clock.ask();
    while (std::optional<std::int64_t> batch = queues_.back()->pop()) {
      clock.got(*stream);
      clock.group(0, 1);
      clock.after_wait(*stream);
      stream->step(static_cast<std::uint64_t>(*batch));
      clock.after_step(*stream);
      stream->synchronize();  // the batch's place is free only then
      clock.ask();
    }
    clock.finish();
    Snapshot window;
    window.parts = clock.total();
    window.limits.cpus = pipeline_.cpus;  // its threads sleep
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      window.stages.push_back(meters_[i]->numbers());
      window.stages.back().places = pipeline_.stages[i].queue;
    }
    return window;
  }

 private:
  void begin_stage(std::size_t i) {
    const PipelineStage& stage = pipeline_.stages[i];
    queues_.push_back(
        std::make_unique<Batches>(static_cast<std::size_t>(stage.queue)));
    meters_.push_back(std::make_unique<StageMeter>(stage.name, stage.workers));
    Batches &from = *queues_[i], &to = *queues_[i + 1];
    StageMeter& meter = *meters_[i];
    const std::uint64_t seed =
        Random(static_cast<std::uint64_t>(pipeline_.seed), 0, i, 0).next();
    threads_.push_back(std::make_unique<Stage>(Stage::Options{
        .name = stage.name,
        .workers = stage.workers,
        .body =
            [&stage, &from, &to, &meter, seed](int) {
              while (std::optional<std::int64_t> batch = from.pop()) {
                {
                  BusyScope scope(meter);
                  wall_clock().sleep_until(
                      wall_clock().now() +
                      from_seconds(1e-3 * service_ms(stage, seed, *batch)));
                }
                meter.add_items(1, 0);
                to.push(*batch);
              }
            },
        .failed = [](std::exception_ptr) { std::terminate(); },
        .last = [&to] { to.close(); }}));
  }

  const Pipeline& pipeline_;
  std::vector<std::unique_ptr<Batches>> queues_;
  std::vector<std::unique_ptr<StageMeter>> meters_;
  std::vector<std::unique_ptr<Stage>> threads_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) try {
  using namespace penstock;
  if (argc != 2) return std::fputs("bench_pipeline_threads FILE\n", stderr), 2;
  const Json list = Json::parse(real_files().read(argv[1]), argv[1]);
  std::vector<Json> results(list.array().size());
  // They sleep most of the time: all at once, some at a time.
  constexpr std::size_t kAtOnce = 6;
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> runners;
  for (std::size_t runner = 0; runner < kAtOnce; ++runner)
    runners.emplace_back([&] {
      for (std::size_t i; (i = next++) < results.size();) {
        const Pipeline pipeline = parse_pipeline(list.array()[i], argv[1]);
        results[i] = window_json(Threads(pipeline).run());
      }
    });
  runners.clear();
  std::puts(Json(std::move(results)).dump().c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
