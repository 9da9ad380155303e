// What does measuring cost the loop that is measured?
//
// The meters cannot be taken out of a loader: what they cost is what a loop
// loses by doing their work once more. Batches are made on the caller's thread,
// in pairs of a loop unchanged and of one that, after each batch, does to
// meters of its own what the loader did to its own for that batch (as many
// scopes, with the clocks where the loader's had them, and as many counts), and
// times a step with three events, as a run does. The first of a pair changes
// from pair to pair. Beside them, how long one scope takes. All by the
// processor time of the thread, which waits for nothing.
//
//     bench_meters [PAIRS]    40
#include <cmath>
#include <memory>

#include "bench/measure.h"
#include "bench/positions.h"
#include "penstock/job/job.h"
#include "penstock/monitor/monitor.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  const char* cache;
  int batches;  // of each half of a pair
};
const Workload kWorkloads[] = {{"rows in memory", "ram", 4000},
                               {"rows read by the batch", "none", 200}};

constexpr std::int64_t kRows = 4030;
constexpr int kScopes = 100'000;

/// Does to meters of its own what was done to those of a loader.
class OnceMore {
 public:
  OnceMore(const std::vector<StageNumbers>& stages, int batches) {
    for (const StageNumbers& stage : stages) {
      const auto scopes = static_cast<int>(
          std::lround(static_cast<double>(stage.times.count()) / batches));
      if (scopes == 0 && stage.items == 0) continue;
      meters_.push_back({std::make_unique<StageMeter>(stage.name, 0), scopes});
      if (scopes == 0) continue;
      // The shorter its scopes were, the fewer read the processor clock. A
      // million of them outweigh the empty ones here.
      const Nanoseconds mean = stage.busy_wall / stage.times.count();
      for (int i = 0; i < 1'000'000; ++i) {
        (void)meters_.back().meter->weight();
        meters_.back().meter->add_busy(mean, Nanoseconds(0));
      }
    }
  }
  void batch(Stream& stream) {
    for (Meter& of : meters_) {
      for (int scope = 0; scope < of.scopes; ++scope) BusyScope busy(*of.meter);
      of.meter->add_items(256, 1024);
    }
    clock_.group(0, 256);
    clock_.got(stream);
    clock_.after_wait(stream);
    clock_.after_step(stream);
    clock_.ask_at_once();
  }

 private:
  struct Meter {
    std::unique_ptr<StageMeter> meter;
    int scopes;
  };
  std::vector<Meter> meters_;
  StepClock clock_{wall_clock()};
};

/// Mean and the upper end of the 95 % interval of it.
Json mean_and_bound(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  const auto count = static_cast<double>(values.size());
  for (double value : values) sum += value;
  const double mean = sum / count;
  for (double value : values) squares += (value - mean) * (value - mean);
  Json json;
  json["mean"] = mean;
  json["upper_95"] = mean + 1.96 * std::sqrt(squares / (count - 1) / count);
  return json;
}

Json measure(const Workload& work, const Positions& data, int pairs) {
  Json document = data.job();
  document["loader"]["cache"] = work.cache;
  document["loader"]["workers"] = 0;
  Job job = parse_job(document);
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  auto dataset = TableDataset::prepare(
      dataset_options(job, device->memory_kind()), *device);
  Loader loader(dataset, loader_options(job, Side::train), *device);
  std::unique_ptr<Stream> stream = device->make_stream();
  for (int i = 0; i < work.batches; ++i) loader.next(*stream);
  OnceMore meters(loader.stages(), work.batches);
  auto ns_per_batch = [&](bool once_more) {
    return 1e9 / work.batches * cpu_seconds([&] {
             for (int i = 0; i < work.batches; ++i) {
               loader.next(*stream);
               if (once_more) meters.batch(*stream);
             }
             stream->synchronize();
           });
  };
  ns_per_batch(true);  // warms up
  Repeats as_it_is, once_more;
  std::vector<double> shares, costs;
  for (int pair = 0; pair < pairs; ++pair) {
    double took[2] = {};
    for (int half : {pair % 2, 1 - pair % 2}) took[half] = ns_per_batch(half);
    as_it_is.add(took[0]);
    once_more.add(took[1]);
    shares.push_back(took[1] / took[0] - 1);
    costs.push_back(took[1] - took[0]);
  }
  Json result;
  result["workload"] = work.name;
  result["pairs"] = pairs;
  result["ns_per_batch"] = as_it_is.json();
  result["ns_per_batch_measured_twice"] = once_more.json();
  result["ns_of_meters"] = mean_and_bound(costs);
  result["share"] = mean_and_bound(shares);
  result["must_reach"] = "share.upper_95 <= 0.02";
  return result;
}

Json scopes(const char* name, Nanoseconds before, int repeats) {
  Repeats ns;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    StageMeter meter("scope", 1);
    meter.add_busy(before, Nanoseconds(0));
    ns.add(1e9 / kScopes * cpu_seconds([&] {
             for (int i = 0; i < kScopes; ++i) {
               BusyScope busy(meter);
               meter.add_items(256, 1024);
             }
           }));
  }
  Json result;
  result["workload"] = name;
  result["ns_per_scope"] = ns.json();
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  const auto pairs = static_cast<int>(argument(count, arguments, 1, 40));
  Json result =
      result_of("meters", "What does measuring cost the loop that is measured?",
                count, arguments);
  Positions data(kRows);
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measure(work, data, pairs));
  result["results"].push_back(
      scopes("a scope that is short on average", Nanoseconds(0), 9));
  result["results"].push_back(
      scopes("a scope of 50 us or more", std::chrono::hours(1), 9));
  return finish(result);
}
