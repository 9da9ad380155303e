// How much memory does preparing a data set take at its peak?
//
// A million rows of the demo, with integer keys, in SQLite: in the order of
// their keys, and in an order that has nothing to do with them. `penstock
// train` prepares them, takes one step and ends; the peak is the whole
// program's, as the system counts it (VmHWM: what was resident at most).
//
//     bench_prepare_memory [ROWS [REPEATS]]
#include "bench/child.h"
#include "bench/measure.h"
#include "bench/positions.h"
#include "penstock/demo/positions.h"
#include "penstock/sampling/sampling.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  const char* table;
  int workers;
};
const Workload kWorkloads[] = {
    {"rows in order of their keys, on one thread", "measurements", 0},
    {"rows in order of their keys, two workers", "measurements", 2},
    {"rows in any order, two workers", "shuffled", 2},
};

constexpr double kMiB = 1 << 20;

/// A second table of the same rows, whose keys are shuffled.
void write_shuffled(const Positions& data, std::int64_t rows) {
  std::vector<NewColumn> columns = PositionsDemo::columns("TIMESTAMP", "json");
  columns[0].primary_key = false;  // else SQLite puts the rows in its order
  SourceSpec to{.kind = "sqlite", .path = data.path(), .table = "shuffled"};
  std::unique_ptr<TableWriter> table = create_table(to, columns, false);
  Permutation shuffled(rows, 1);
  PositionsDemo demo(1, rows);
  std::int64_t row = 0;
  for (Block block; demo.next(1024, block);) {
    Column keys{.type = ColumnType::int64};
    for (std::int64_t i = 0; i < block.rows; ++i)
      keys.append_int64(shuffled(row++));
    block.columns[0] = std::move(keys);
    table->write(block);
  }
  table->finish();
}

Json measure(const Workload& work, const Positions& data, double packed,
             int repeats) {
  std::string job = (data.folder() / "job.json").string();
  Json document = data.job();
  document["train"]["max_steps"] = 1;
  document["loader"]["workers"] = work.workers;
  document["source"]["table"] = work.table;
  document["source"]["key"] = "id";
  real_files().write_atomic(job, document.dump());
  Repeats peak, wall;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    ChildRun run = run_child({penstock_program(), "train", job, "--json"});
    peak.add(static_cast<double>(run.peak_bytes) / kMiB);
    wall.add(run.wall_seconds);
  }
  Json result;
  result["workload"] = work.name;
  result["peak_mib"] = peak.json();
  result["peak_minus_128_mib_by_packed"] = (peak.median() - 128) / packed;
  result["must_reach"] = "peak_minus_128_mib_by_packed <= 2.5";
  result["wall_seconds"] = wall.json();
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 1'000'000);
  auto repeats = static_cast<int>(argument(count, arguments, 2, 3));
  Json result =
      result_of("prepare_memory",
                "How much memory does preparing a data set take at its peak?",
                count, arguments);
  Positions data(rows);
  write_shuffled(data, rows);
  std::size_t row_bytes =
      layout_of(parse_fields(*data.job().find("fields"), "fields")).row_bytes;
  double packed =
      static_cast<double>(rows) * static_cast<double>(row_bytes) / kMiB;
  result["rows"] = rows;
  result["row_bytes"] = row_bytes;
  result["packed_mib"] = packed;
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measure(work, data, packed, repeats));
  return finish(result);
}
