// How long does it take to know which sample comes next, among 10^9 of them,
// and does that need memory which grows with them? One JSON document on
// standard output; ns per index, median of five repeats after a warm-up.

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/base.h"
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
  std::array<double, kRepeats> ns{};
  for (double& repeat : ns) {
    Nanoseconds begin = wall_clock().now();
    std::int64_t made = run();
    repeat =
        1e9 * seconds(wall_clock().now() - begin) / static_cast<double>(made);
  }
  std::ranges::sort(ns);
  Json result;
  result["workload"] = name;
  result["ns_per_index"] = ns[kRepeats / 2];
  result["min"] = ns.front();
  result["max"] = ns.back();
  result["memory_growth_bytes"] = resident_bytes() - before;
  return result;
}

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos)
      return line.substr(line.find(": ") + 2);
  utsname system{};
  uname(&system);
  return system.machine;
}

std::string commit() {
  std::array<char, 64> text{};
  if (FILE* git = popen("git describe --always --dirty 2>/dev/null", "r")) {
    if (std::fgets(text.data(), text.size(), git) == nullptr) text[0] = 0;
    pclose(git);
  }
  std::string name = text.data();
  return name.substr(0, name.find('\n'));
}

Json report() {
  std::int64_t sum = 0;
  Json results{Json::Array{}};
  results.push_back(
      measured("sample_at, a jump per index", [&] { return run_jumps(sum); }));
  for (const Workload& work : kPlans)
    results.push_back(
        measured(work.name, [&] { return run_plans(work, sum); }));
  Json json;
  json["bench"] = "order";
  json["samples"] = kSamples;
  json["repeats"] = kRepeats;
  json["results"] = std::move(results);
  json["machine"]["processor"] = processor();
  json["machine"]["cores"] = std::int64_t{std::thread::hardware_concurrency()};
  json["commit"] = commit();
  json["measured_at"] = utc_text(std::chrono::system_clock::now());
  json["checksum"] = sum;
  return json;
}

}  // namespace
}  // namespace penstock

int main() {
  std::printf("%s\n", penstock::report().dump(2).c_str());
  return 0;
}
