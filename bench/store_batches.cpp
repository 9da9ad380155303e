// What does a batch cost whose rows are in a mapped store, once each block has
// been compared with its hash?
//
// Rows of 32 float32 in tier `disk`, their pages in memory: small batches of
// few bytes, where what is done for each row weighs most, and large ones. The
// time is from asking for a batch until it is given back, on the caller's
// thread and with two workers, after two epochs. bench/compare.py compares it
// with a build that checks nothing.
//
//     bench_store_batches [REPEATS [ROWS]]
#include <unistd.h>

#include <filesystem>

#include "bench/made_source.h"
#include "bench/measure.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  std::int64_t batch;
  int workers;
};
const Workload kWorkloads[] = {
    {"256 rows, on the caller's thread", 256, 0},
    {"8,192 rows, on the caller's thread", 8192, 0},
    {"8,192 rows, two workers", 8192, 2},
};
constexpr std::int64_t kRowsOfARepeat = 1 << 21;

std::shared_ptr<const TableDataset> stored(std::int64_t rows,
                                           const std::filesystem::path& dir,
                                           Device& device) {
  TableDatasetOptions options;
  options.fields = made_fields();
  options.cache = "disk";
  options.store_dir = dir.string();
  options.source.version = "1";
  return TableDataset::prepare(
      options, std::make_unique<MadeSource>(rows, 0, false), device);
}

Json measure(const Workload& work,
             const std::shared_ptr<const TableDataset>& rows, Device& device,
             int repeats) {
  LoaderOptions options;
  options.batch_size = work.batch;
  options.workers = work.workers;
  Loader loader(rows, options, device);
  std::unique_ptr<Stream> stream = device.make_stream();
  auto take = [&](std::int64_t batches) {
    for (std::int64_t i = 0; i < batches; ++i) loader.next(*stream);
    stream->synchronize();
  };
  const std::int64_t batches = kRowsOfARepeat / work.batch;
  take(2 * loader.steps_per_epoch());  // each block is checked
  Repeats time, cpu;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double before = process_cpu_seconds();
    time.add(1e6 * wall_seconds([&] { take(batches); }) /
             static_cast<double>(batches));
    cpu.add(1e6 * (process_cpu_seconds() - before) /
            static_cast<double>(batches));
  }
  Json result;
  result["workload"] = work.name;
  result["batch_size"] = work.batch;
  result["row_bytes"] = rows->layout().row_bytes;
  result["us_per_batch"] = time.json();
  result["cpu_us_per_batch"] = cpu.json();
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  auto repeats = static_cast<int>(argument(count, arguments, 1, 5));
  std::int64_t rows = argument(count, arguments, 2, 200'000);
  Json result = result_of("store_batches",
                          "What does a batch cost whose rows are in a mapped "
                          "store that has been checked?",
                          count, arguments);
  std::filesystem::path dir =
      std::filesystem::temp_directory_path() /
      ("penstock-bench-batches-" + std::to_string(::getpid()));
  {
    std::unique_ptr<Device> device = open_device({.kind = "cpu"});
    std::shared_ptr<const TableDataset> set = stored(rows, dir, *device);
    for (const Workload& work : kWorkloads)
      result["results"].push_back(measure(work, set, *device, repeats));
  }
  std::filesystem::remove_all(dir);
  return finish(result);
}
