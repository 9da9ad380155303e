// How long does it take to know which sample comes next, among 10^9 of them,
// and does that need memory which grows with them? In ns of the processor per
// index. And how much faster are many positions at once than one after the
// other?
//
//     bench_order

#include <unistd.h>

#include <fstream>
#include <span>

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
    for (const SampleRange& range : plan.ranges) sum += range.sample;
    made += std::ssize(plan.ranges);
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
    double time = cpu_seconds([&] { made = run(); });
    ns.add(1e9 * time / static_cast<double>(made));
  }
  Json result;
  result["workload"] = name;
  result["ns_per_index"] = ns.json();
  result["memory_growth_bytes"] = resident_bytes() - before;
  result["must_reach"] = "about 150 ns; no growth";
  return result;
}

// Draws with replacement, each a place of 800 MB that no cache holds.
void add_weighted(Json& result, std::int64_t& sum) {
  constexpr std::int64_t kWeighted = 100'000'000;
  Order order{.samples = kWeighted, .seed = 1, .batch_size = 256};
  double seconds = 0;
  {
    std::vector<double> weights;
    Random random(1, 2, 3, 4);
    for (std::int64_t i = 0; i < kWeighted; ++i)
      weights.push_back(random.uniform());
    seconds = cpu_seconds(
        [&] { order.draws = std::make_shared<const Draws>(weights); });
  }
  Json one = measured("plan_step, batch 256 drawn by 10^8 weights", [&] {
    return run_plans({"", order, {}, 20'000}, sum);
  });
  one["must_reach"] = "300 ns";
  one["seconds_to_prepare"] = seconds;
  result["results"].push_back(std::move(one));
}

struct Walk {
  const char* name;
  std::int64_t samples;
  std::size_t batch;
};

const Walk kWalks[] = {
    {"10^6 samples, 64 at once", 1'000'000, 64},
    {"10^6 samples, 1,024 at once", 1'000'000, 1024},
    {"10^9 samples, 1,024 at once", kSamples, 1024},
    {"2^30 + 1 samples, 1,024 at once", (1 << 30) + 1, 1024},
};
constexpr std::int64_t kWalked = 1'000'000;

const char* name_of(Instructions use) {
  switch (use) {
    case Instructions::baseline:
      return "baseline";
    case Instructions::avx2:
      return "avx2";
    case Instructions::avx512:
      return "avx512";
  }
  return "?";
}

// Seconds of the processor for a million positions, `batch` by `batch`.
double walk(const Walk& work, std::int64_t& sum,
            const std::function<void(const Permutation&, std::int64_t,
                                     std::span<std::int64_t>)>& samples_at) {
  Permutation permutation(work.samples, 1);
  std::vector<std::int64_t> samples(work.batch);
  return cpu_seconds([&] {
    auto count = static_cast<std::int64_t>(work.batch);
    for (std::int64_t first = 0; first + count <= kWalked; first += count) {
      samples_at(permutation, first, samples);
      for (std::int64_t sample : samples) sum += sample;
    }
  });
}

Json compared(const Walk& work, std::int64_t& sum) {
  std::vector<std::function<double()>> of = {[&] {
    return walk(work, sum,
                [](const Permutation& permutation, std::int64_t first,
                   std::span<std::int64_t> samples) {
                  for (std::int64_t& sample : samples)
                    sample = permutation(first++);
                });
  }};
  for (Instructions use : usable_instructions())
    of.push_back([&, use] {
      return walk(work, sum,
                  [use](const Permutation& permutation, std::int64_t first,
                        std::span<std::int64_t> samples) {
                    permutation.range(first, samples, use);
                  });
    });
  std::vector<Repeats> seconds = in_turns(2 * kRepeats + 1, of);
  Json result;
  result["workload"] = work.name;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Json one;
    one["method"] = i == 0 ? "one after the other"
                           : std::string("many at once, ") +
                                 name_of(usable_instructions()[i - 1]);
    one["ns_per_index"] = 1e9 * seconds[i].median() / kWalked;
    one["times_as_fast"] = seconds[0].median() / seconds[i].median();
    result["methods"].push_back(one);
  }
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
  add_weighted(result, sum);
  for (const Walk& work : kWalks)
    result["walks"].push_back(compared(work, sum));
  result["checksum"] = sum;
  return finish(result);
}
