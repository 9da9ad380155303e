// How long does it take to know which sample comes next, among 10^9 of them,
// and does that need memory which grows with them? In ns of the processor per
// index. And how much faster are many positions at once than one after the
// other? Of draws by 10^8 weights also: do they follow the weights, and does a
// run that goes on later draw the same?
//
//     bench_order

#include <unistd.h>

#include <cmath>
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

constexpr std::int64_t kWeighted = 100'000'000;
constexpr std::int64_t kDrawSteps = 20'000;

std::vector<double> random_weights() {
  std::vector<double> weights;
  Random random(1, 2, 3, 4);
  for (std::int64_t i = 0; i < kWeighted; ++i)
    weights.push_back(random.uniform());
  return weights;
}

/// Of the draws of an epoch's first steps, in cells of a part of the rows each
/// whose weights are alike.
Json chi_square(const Order& order, const std::vector<double>& weights) {
  constexpr std::size_t kParts = 40, kWeights = 25;
  constexpr std::size_t kCells = kParts * kWeights;
  auto cell = [&](std::size_t row) {
    return row * kParts / weights.size() * kWeights +
           static_cast<std::size_t>(weights[row] * kWeights);
  };
  std::vector<double> expected(kCells), found(kCells);
  double all = 0, draws = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    expected[cell(row)] += weights[row];
    all += weights[row];
  }
  Plan plan;
  for (std::int64_t step = 0; step < kDrawSteps; ++step) {
    plan_step(order, {}, {.epoch = 1, .step = step}, plan);
    for (const SampleRange& range : plan.ranges)
      ++found[cell(static_cast<std::size_t>(range.sample))];
    draws += static_cast<double>(plan.ranges.size());
  }
  double sum = 0;
  for (std::size_t c = 0; c < kCells; ++c) {
    const double mean = draws * expected[c] / all;
    sum += (found[c] - mean) * (found[c] - mean) / mean;
  }
  // Normal with this mean and variance, as good as.
  const double freedom = kCells - 1;
  Json result;
  result["draws"] = draws;
  result["degrees_of_freedom"] = freedom;
  result["chi_square"] = sum;
  result["standard_deviations"] = (sum - freedom) / std::sqrt(2 * freedom);
  result["must_reach"] = "4 standard deviations at most";
  return result;
}

/// Steps that a new process, which has the weights alone, plans as `order`
/// does.
Json resumed(const Order& order, const std::vector<double>& weights) {
  Order again = order;
  again.draws = std::make_shared<const Draws>(weights);
  std::int64_t equal = 0, steps = 0;
  Plan before, after;
  for (std::int64_t step = 7; step < kDrawSteps; step += 97, ++steps) {
    plan_step(order, {}, {.epoch = 2, .step = step}, before);
    plan_step(again, {}, {.epoch = 2, .step = step}, after);
    equal += before.ranges == after.ranges;
  }
  Json result;
  result["steps"] = steps;
  result["equal"] = equal;
  result["must_reach"] = "all";
  return result;
}

// Draws with replacement, each a place of 800 MB that no cache holds.
void add_weighted(Json& result, std::int64_t& sum) {
  Order order{.samples = kWeighted, .seed = 1, .batch_size = 256};
  const std::vector<double> weights = random_weights();
  const double seconds = cpu_seconds(
      [&] { order.draws = std::make_shared<const Draws>(weights); });
  Json one = measured("plan_step, batch 256 drawn by 10^8 weights", [&] {
    return run_plans({"", order, {}, kDrawSteps}, sum);
  });
  one["must_reach"] = "300 ns";
  one["seconds_to_prepare"] = seconds;
  one["against_the_weights"] = chi_square(order, weights);
  one["resumed"] = resumed(order, weights);
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
