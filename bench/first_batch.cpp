// How long does it take from the start of `penstock train` to its first step?
//
// 4,030 rows of the demo in SQLite, no model, the device `cpu`: the program is
// started, prepares the whole data set, takes one step and ends. `wall_ms` is
// the life of the process; `first_batch_ms` is what its report says, counted
// from the moment its job was read. `cold` drops the database's pages from
// the page cache first.
//
//     bench_first_batch [ROWS [REPEATS]]
#include <fcntl.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/measure.h"
#include "bench/positions.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  bool cold;
};
const Workload kWorkloads[] = {{"warm", false}, {"cold", true}};

// Asks the system to forget the pages of a file; written ones stay.
void drop_pages(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  PENSTOCK_ASSERT(file >= 0, "the database can be opened");
  ::fdatasync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

Json measure(const Workload& work, const Positions& data, int repeats) {
  std::string job = (data.folder() / "job.json").string();
  Json document = data.job();
  document["train"]["max_steps"] = 1;
  real_files().write_atomic(job, document.dump());
  Repeats wall, cpu, first;
  for (int repeat = -1; repeat < repeats; ++repeat) {
    if (work.cold) drop_pages(data.path());
    ChildRun run = run_child({penstock_program(), "train", job, "--json"});
    if (repeat < 0) continue;  // the warm-up
    wall.add(1e3 * run.wall_seconds);
    cpu.add(1e3 * run.cpu_seconds);
    first.add(
        Json::parse(run.output, "report").find("first_batch_ms")->number());
  }
  Json result;
  result["workload"] = work.name;
  result["wall_ms"] = wall.json();
  result["cpu_ms"] = cpu.json();
  result["first_batch_ms"] = first.json();
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 4030);
  auto repeats = static_cast<int>(argument(count, arguments, 2, 9));
  Json result = result_of("first_batch",
                          "How long does it take from the start of `penstock "
                          "train` to its first step?",
                          count, arguments);
  result["rows"] = rows;
  result["must_reach"] = "wall_ms of about 250 or less";
  Positions data(rows);
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measure(work, data, repeats));
  return finish(result);
}
