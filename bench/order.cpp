// How long does it take to know which sample comes next, among 10^9 of them,
// and does that need memory which grows with them? In ns per index.
//
//     bench_order

#include <unistd.h>

#include <fstream>

#include "bench/measure.h"
#include "penstock/sampling/sampling.h"

namespace penstock {
namespace {

constexpr std::int64_t kSamples = 1'000'000'000;
constexpr int kRepeats = 5;

struct Workload {
  const char* name;
  Order order;
  Rank rank;
  std::int64_t steps;  ///< per repeat; spread over the whole epoch
};

const Workload kPlans[] = {
    {"plan_step, batch 256",
     {.samples = kSamples, .seed = 1, .batch_size = 256},
     {0, 1},
     20'000},
    {"plan_step, batch 65536, rank 700 of 1024",
     {.samples = kSamples, .seed = 1, .batch_size = 1 << 16},
     {700, 1024},
     15'000},
    {"plan_step, batch 256, 2^30 + 1 samples (the longest walks)",
     {.samples = (1 << 30) + 1, .seed = 1, .batch_size = 256},
     {0, 1},
     10'000},
};
constexpr std::int64_t kJumps = 2'000'000;

// Without the pages of files: code that is run for the first time is no data.
std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  std::int64_t shared = 0;
  statm >> size >> resident >> shared;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

// Returns how many indices it made; `sum` keeps the compiler from leaving
// them out.
std::int64_t run_plans(const Workload& work, std::int64_t& sum) {
  std::int64_t stride = steps_per_epoch(work.order) / work.steps;
  std::int64_t made = 0;
  Plan plan;
  for (std::int64_t i = 0; i < work.steps; ++i) {
    plan_step(work.order, work.rank, {.epoch = 1, .step = i * stride}, plan);
    for (const Piece& piece : plan.pieces) sum += piece.sample;
    made += std::ssize(plan.pieces);
  }
  return made;
}

std::int64_t run_jumps(std::int64_t& sum) {
  Order order{.samples = kSamples, .seed = 1};
  for (std::int64_t i = 0; i < kJumps; ++i)
    sum += sample_at(order, i % 7, i * (kSamples / kJumps));
  return kJumps;
}

Json measured(const char* name, const std::function<std::int64_t()>& run) {
  run();  // warm-up, also of what reads the memory's size
  resident_bytes();
  std::int64_t before = resident_bytes();
  Repeats ns;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::int64_t made = 0;
    double time = wall_seconds([&] { made = run(); });
    ns.add(1e9 * time / static_cast<double>(made));
  }
  Json result;
  result["workload"] = name;
  result["ns_per_index"] = ns.json();
  result["memory_growth_bytes"] = resident_bytes() - before;
  result["must_reach"] = "about 150 ns; no growth";
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  Json result = result_of("order",
                          "How long does it take to know which sample comes "
                          "next, among 10^9 of them?",
                          count, arguments);
  std::int64_t sum = 0;
  result["samples"] = kSamples;
  result["results"].push_back(
      measured("sample_at, a jump per index", [&] { return run_jumps(sum); }));
  for (const Workload& work : kPlans)
    result["results"].push_back(
        measured(work.name, [&] { return run_plans(work, sum); }));
  result["checksum"] = sum;
  return finish(result);
}
