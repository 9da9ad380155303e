#include "bench/measure.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "penstock/monitor/monitor.h"

namespace penstock {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 256> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr)
    text += piece.data();
  pclose(pipe);
  return text;
}

std::string commit() {
  const std::string git = "git -C '" PENSTOCK_BENCH_SOURCE "' ";
  std::string name = output_of(git + "rev-parse --short=12 HEAD 2>/dev/null");
  name = name.substr(0, name.find('\n'));
  if (name.empty()) return "unknown";
  bool dirty =
      !output_of(git + "status --porcelain -- . ':!bench/results' 2>/dev/null")
           .empty();
  return name + (dirty ? "-dirty" : "");
}

}  // namespace

double Repeats::median() const {
  PENSTOCK_ASSERT(!values_.empty(), "something was measured");
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

Json Repeats::json() const {
  Json json;
  json["median"] = median();
  json["min"] = *std::ranges::min_element(values_);
  json["max"] = *std::ranges::max_element(values_);
  json["repeats"] = values_.size();
  return json;
}

std::vector<Repeats> in_turns(int repeats,
                              const std::vector<std::function<double()>>& of) {
  for (const std::function<double()>& measure : of) measure();
  std::vector<Repeats> results(of.size());
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (std::size_t i = 0; i < of.size(); ++i) results[i].add(of[i]());
  return results;
}

double wall_seconds(const std::function<void()>& act) {
  Nanoseconds begin = wall_clock().now();
  act();
  return seconds(wall_clock().now() - begin);
}

double cpu_seconds(const std::function<void()>& act) {
  Nanoseconds begin = thread_cpu_time();
  act();
  return seconds(thread_cpu_time() - begin);
}

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

Json result_of(const std::string& bench, const std::string& question, int count,
               char** arguments) {
  std::string command = "bench/run " + bench;
  for (int i = 1; i < count; ++i) command += std::string(" ") + arguments[i];
  Json json;
  json["bench"] = bench;
  json["question"] = question;
  json["command"] = command;
  json["commit"] = commit();
  json["measured_at"] = utc_text(std::chrono::system_clock::now());
  json["machine"] = machine_json();
  return json;
}

std::int64_t argument(int count, char** arguments, int at,
                      std::int64_t otherwise) {
  return count > at ? std::atoll(arguments[at]) : otherwise;
}

int finish(const Json& result) {
  std::printf("%s\n", result.dump(2).c_str());
  return 0;
}

}  // namespace penstock
