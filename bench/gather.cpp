// How long does a batch take whose rows are resident, does it allocate, and
// how close does a gather come to copying?
//
// (a) The quick start's job resident on the device, batches of 256: from
// asking for a batch until it is given back, the epoch seam inside. Every call
// of operator new counts, whichever thread makes it.
// (b) 65,536 rows of 1 KB in random order out of tables of 64 MiB and of 1 GiB
// against one copy of as many bytes within the device; ten of either are queued
// at once, and waited for.
//
//     bench_gather [DEVICE [REPEATS]]    cpu or cuda
#include "bench/allocations.h"
#include "bench/measure.h"
#include "bench/positions.h"
#include "penstock/job/job.h"

namespace penstock {
namespace {

struct LoaderWorkload {
  const char* name;
  int workers;
};
const LoaderWorkload kLoaders[] = {
    {"on the caller's thread", 0}, {"one worker", 1}, {"two workers", 2}};

struct TableWorkload {
  const char* name;
  std::int64_t rows;
};
const TableWorkload kTables[] = {{"64 MiB", 1 << 16}, {"1 GiB", 1 << 20}};

constexpr std::int64_t kRows = 4030;
constexpr int kBatches = 4000;  // of a repeat
constexpr std::size_t kRowBytes = 1024;
constexpr std::int64_t kGathered = 1 << 16;
constexpr int kQueued = 10;

Json measure(const LoaderWorkload& work, const Positions& data, Device& device,
             int repeats) {
  Json document = data.job();
  document["loader"]["cache"] = "device";
  document["loader"]["workers"] = work.workers;
  Job job = parse_job(document);
  auto dataset =
      TableDataset::prepare(dataset_options(job, device.memory_kind()), device);
  Loader loader(dataset, loader_options(job, Side::train), device);
  std::unique_ptr<Stream> stream = device.make_stream();
  std::int64_t allocated = 0;
  double cpu = 0;
  auto batches = [&] {
    std::int64_t before = allocations();
    double cpu_before = process_cpu_seconds();
    double time = wall_seconds([&] {
      for (int i = 0; i < kBatches; ++i) loader.next(*stream);
      stream->synchronize();
    });
    allocated = allocations() - before;
    cpu = process_cpu_seconds() - cpu_before;
    return 1e6 * time / kBatches;
  };
  batches();  // warms up
  Repeats time, cpu_each, allocations_each;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    time.add(batches());
    cpu_each.add(1e6 * cpu / kBatches);
    allocations_each.add(static_cast<double>(allocated) / kBatches);
  }
  Json result;
  result["workload"] = work.name;
  result["batch_size"] = job.loading.options.batch_size;
  result["row_bytes"] = dataset->layout().row_bytes;
  result["us_per_batch"] = time.json();
  result["cpu_us_per_batch"] = cpu_each.json();
  result["allocations_per_batch"] = allocations_each.json();
  result["must_reach"] = "no allocation; us_per_batch about 25";
  return result;
}

std::vector<std::int64_t> drawn_rows(std::int64_t of) {
  Permutation shuffled(of, 1);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < kGathered; ++i) rows.push_back(shuffled(i));
  return rows;
}

// Every byte of it is written once, so that it is real memory.
Buffer filled_table(std::int64_t rows, Device& device, Stream& stream) {
  Buffer table = device.allocate(static_cast<std::size_t>(rows) * kRowBytes);
  std::vector<std::byte> piece(kGathered * kRowBytes);
  for (std::size_t i = 0; i < piece.size(); ++i)
    piece[i] = static_cast<std::byte>(i * 7);
  for (std::size_t at = 0; at < table.size(); at += piece.size())
    stream.copy(table.data() + at, piece.data(), piece.size());
  stream.synchronize();
  return table;
}

Json measure(const TableWorkload& work, Device& device, int repeats) {
  std::unique_ptr<Stream> stream = device.make_stream();
  Buffer table = filled_table(work.rows, device, *stream);
  Buffer out = device.allocate(kGathered * kRowBytes);
  std::vector<std::int64_t> rows = drawn_rows(work.rows);
  std::vector<GatherField> fields = {
      {table.data(), kRowBytes, kRowBytes, out.data()}};
  constexpr double kGigabytes = 1e-9 * double(kQueued * kGathered * kRowBytes);
  auto gather = [&] {
    return kGigabytes / wall_seconds([&] {
             for (int i = 0; i < kQueued; ++i)
               stream->run(Gather{.fields = fields, .rows = rows});
             stream->synchronize();
           });
  };
  auto copy = [&] {
    return kGigabytes / wall_seconds([&] {
             for (int i = 0; i < kQueued; ++i)
               stream->copy(out.data(), table.data(), out.size());
             stream->synchronize();
           });
  };
  std::vector<Repeats> speeds = in_turns(repeats, {gather, copy});
  Json result;
  result["workload"] = std::string("65,536 rows of 1 KB out of ") + work.name;
  result["gather_gb_s"] = speeds[0].json();
  result["copy_gb_s"] = speeds[1].json();
  result["ratio"] = speeds[0].median() / speeds[1].median();
  if (device.memory_kind() == MemoryKind::cuda)
    result["must_reach"] = "ratio >= 0.8";
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::string kind = count > 1 ? arguments[1] : "cpu";
  auto repeats = static_cast<int>(argument(count, arguments, 2, 9));
  Json result =
      result_of("gather",
                "How long does a batch take whose rows are resident, does it "
                "allocate, and how close does a gather come to copying?",
                count, arguments);
  std::unique_ptr<Device> device = open_device({.kind = kind});
  result["device"] = device->name();
  Positions data(kRows);
  for (const LoaderWorkload& work : kLoaders)
    result["results"].push_back(measure(work, data, *device, repeats));
  for (const TableWorkload& work : kTables)
    result["results"].push_back(measure(work, *device, repeats));
  return finish(result);
}
