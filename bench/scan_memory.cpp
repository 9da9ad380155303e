// How much memory does the initial scan of a data set take at its peak?
//
// Two million rows of 32 float32, made as they are read, so that nothing but
// the scan takes memory: in order of their keys and in any order, kept in host
// memory and not kept, with and without a million more rows that are left out,
// and with a limit beyond which values go to files. Each is prepared in a
// process of its own; the peak is the whole process's, as the system counts it
// (pages of mapped files that happen to be in memory among it), and `base` is
// what it took before the scan.
//
//     bench_scan_memory [ROWS [BAD_ROWS]]
#include "bench/made_source.h"
#include "bench/measure.h"
#include "bench/processes.h"
#include "penstock/dataset/table/table_dataset.h"

namespace penstock {
namespace {

constexpr double kMiB = 1 << 20;

struct Workload {
  const char* name;
  const char* cache;
  bool scrambled;
  bool bad;
  std::size_t limit = 0;  // MiB; 0: a share of what is free
};
const Workload kWorkloads[] = {
    {"tier ram, by key", "ram", false, false},
    {"tier ram, in any order", "ram", true, false},
    {"tier none, by key", "none", false, false},
    {"tier none, in any order", "none", true, false},
    {"tier ram, by key, with bad rows", "ram", false, true},
    {"tier ram, in any order, with bad rows", "ram", true, true},
    {"tier disk, by key, a limit of 160 MiB", "disk", false, false, 160},
    {"tier disk, in any order, a limit of 160 MiB", "disk", true, false, 160},
    {"tier none, in any order, a limit of 160 MiB", "none", true, false, 160},
};

void prepare(const Workload& work, const TableDatasetOptions& options,
             std::int64_t rows, std::int64_t bad, Device& device,
             Json& result) {
  auto set = TableDataset::prepare(
      options,
      std::make_unique<MadeSource>(rows, work.bad ? bad : 0, work.scrambled),
      device);
  result["left_out"] = set->facts().scan->left_out();
  for (const TierPlan::Line& line : set->plan().lines)
    if (line.chosen)
      result["planned_mib"] = static_cast<double>(line.rows_bytes) / kMiB;
  result["scan_mib"] = static_cast<double>(set->plan().scan->bytes) / kMiB;
  result["spilled_mib"] = static_cast<double>(set->plan().scan->spilled) / kMiB;
  result["limit_mib"] =
      static_cast<double>(set->plan().scan->limit.value_or(0)) / kMiB;
  result["fingerprint"] = set->fingerprint();
}

Json prepare(const Workload& work, std::int64_t rows, std::int64_t bad) {
  TableDatasetOptions options;
  options.fields = made_fields();
  options.cache = work.cache;
  options.workers = 2;
  options.source.skip_bad = true;
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  double base = peak_mib();
  Json result;
  result["workload"] = work.name;
  if (work.limit > 0) options.scan_bytes = work.limit << 20;
  double wall = wall_seconds([&] {
    try {
      prepare(work, options, rows, bad, *device, result);
    } catch (const Error& error) {
      result["error"] = error.parts().code;
      result["why"] = error.parts().why;
    }
  });
  double values =
      static_cast<double>(rows) * kMadeColumns * sizeof(float) / kMiB;
  result["parsed_mib"] = values;
  result["base_mib"] = base;
  result["peak_mib"] = peak_mib();
  result["used_mib"] = peak_mib() - base;
  result["used_by_parsed"] = (peak_mib() - base) / values;
  result["wall_seconds"] = wall;
  return result;
}

/// In a process of its own, so that its peak is its own.
Json measure(const Workload& work, std::int64_t rows, std::int64_t bad) {
  return in_processes(1, [&](int) { return prepare(work, rows, bad); })[0];
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 2'000'000);
  std::int64_t bad = argument(count, arguments, 2, 1'000'000);
  Json result = result_of(
      "scan_memory", "How much memory does the initial scan take at its peak?",
      count, arguments);
  result["rows"] = rows;
  result["bad_rows"] = bad;
  result["must_reach"] =
      "used_mib less spilled_mib (pages of files) <= limit_mib + 64; in any "
      "order in tier ram: used_by_parsed <= 1.5";
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measure(work, rows, bad));
  return finish(result);
}
