// What does a table of ten million rows take in each tier, and what does a
// second run cost that finds them on disk?
//
// Rows of 32 float32, made as they are read. Each tier is prepared in a process
// of its own, with a limit of 1 GiB for the scan: beside what the process held
// at most stands what was said beforehand, the limit, and what the plan said.
// Then four processes start at once on an empty folder: one of them scans and
// writes the store, the others wait for it; all read batches, and the pages
// that they share count in each with its share (PSS). Then one more starts: the
// time to its first batch, and the utilisation of a simulated accelerator at 5
// ms per step of 256 rows, the store's pages being in memory.
//
//     bench_store [ROWS]
#include <unistd.h>

#include <filesystem>

#include "bench/made_source.h"
#include "bench/measure.h"
#include "bench/processes.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

constexpr double kMiB = 1 << 20;
constexpr std::size_t kScanLimit = std::size_t{1} << 30;

TableDatasetOptions options_for(const std::string& cache,
                                const std::filesystem::path& dir) {
  TableDatasetOptions options;
  options.fields = made_fields();
  options.cache = cache;
  options.store_dir = dir.string();
  options.workers = 2;
  options.source.version = "1";
  options.scan_bytes = kScanLimit;
  return options;
}

LoaderOptions loading(std::int64_t batches, int rank) {
  LoaderOptions options;
  options.batch_size = 256;
  options.workers = 2;
  options.batches = batches;
  options.seed = static_cast<std::uint64_t>(rank);
  return options;
}

Json prepared(const std::string& cache, std::int64_t rows,
              const std::filesystem::path& dir) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  const double base = peak_mib();
  std::shared_ptr<const TableDataset> set;
  double wall = wall_seconds([&] {
    set = TableDataset::prepare(options_for(cache, dir),
                                std::make_unique<MadeSource>(rows, 0, false),
                                *device);
  });
  const TierPlan& plan = set->plan();
  double host = 0;
  for (const TierPlan::Line& line : plan.lines)
    if (line.chosen) host += static_cast<double>(line.host_bytes) / kMiB;
  Json result;
  result["workload"] = "tier " + cache;
  result["scan_limit_mib"] = static_cast<double>(kScanLimit) / kMiB;
  result["scan_mib"] = static_cast<double>(plan.scan->bytes) / kMiB;
  result["spilled_mib"] = static_cast<double>(plan.scan->spilled) / kMiB;
  result["planned_host_mib"] = host;
  result["peak_mib"] = peak_mib() - base;
  std::optional<MemoryShare> share = read_memory_share();
  result["after_mib"] =
      share ? Json(static_cast<double>(share->anonymous) / kMiB) : Json();
  result["wall_seconds"] = wall;
  return result;
}

/// One of several that start at once.
Json rank_of(int rank, std::int64_t rows, const std::filesystem::path& dir) {
  constexpr std::int64_t kBatches = 20'000;
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  Nanoseconds began = wall_clock().now();
  auto source = std::make_unique<MadeSource>(rows, 0, false);
  auto scans = source->scans;
  auto set = TableDataset::prepare(options_for("disk", dir), std::move(source),
                                   *device);
  Loader loader(set, loading(kBatches, rank), *device);
  loader.next();
  Json result;
  result["rank"] = rank;
  result["scanned"] = *scans > 0;
  result["first_batch_ms"] = 1e3 * seconds(wall_clock().now() - began);
  while (loader.next()) {
  }
  std::optional<MemoryShare> share = read_memory_share();
  if (share) {
    result["pss_files_mib"] = static_cast<double>(share->files) / kMiB;
    result["pss_own_mib"] = static_cast<double>(share->anonymous) / kMiB;
  }
  result["fingerprint"] = set->fingerprint();
  // The others still map it.
  ::usleep(3'000'000);
  share = read_memory_share();
  if (share)
    result["pss_files_later_mib"] = static_cast<double>(share->files) / kMiB;
  ::usleep(3'000'000);
  return result;
}

Json second_run(std::int64_t rows, const std::filesystem::path& dir) {
  constexpr int kSteps = 1000;
  constexpr double kStepMs = 5;
  std::unique_ptr<Device> device =
      open_device({.kind = "sim", .step_ms = kStepMs});
  std::unique_ptr<Stream> stream = device->make_stream();
  Nanoseconds began = wall_clock().now();
  auto source = std::make_unique<MadeSource>(rows, 0, false);
  auto scans = source->scans;
  auto set = TableDataset::prepare(options_for("disk", dir), std::move(source),
                                   *device);
  Loader loader(set, loading(kSteps + 1, 9), *device);
  std::optional<Batch> batch = loader.next(*stream);
  batch->wait();
  Json result;
  result["workload"] = "second run";
  result["scanned"] = *scans > 0;
  result["first_batch_ms"] = 1e3 * seconds(wall_clock().now() - began);
  stream->step(0);
  stream->synchronize();
  double wall = wall_seconds([&] {
    for (int step = 1; step <= kSteps; ++step) {
      batch = loader.next(*stream);
      stream->step(static_cast<std::uint64_t>(step));
    }
    batch.reset();
    stream->synchronize();
  });
  result["au"] = kSteps * kStepMs / 1e3 / wall;
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 10'000'000);
  std::filesystem::path dir =
      std::filesystem::temp_directory_path() /
      ("penstock-bench-store-" + std::to_string(::getpid()));
  Json result =
      result_of("store",
                "What do ten million rows take in each tier, and what "
                "does a second run cost?",
                count, arguments);
  result["rows"] = rows;
  result["must_reach"] =
      "peak_mib less spilled_mib (pages of files) <= the larger of "
      "scan_limit_mib and planned_host_mib, + 128; one of four ranks scans; "
      "second run: first_batch_ms <= 50, au >= 0.97";
  auto alone = [&](auto act) {
    result["results"].push_back(in_processes(1, [&](int) { return act(); })[0]);
  };
  for (const char* cache : {"ram", "none", "disk"})
    alone([&] { return prepared(cache, rows, dir / cache); });
  for (Json& rank : in_processes(
           4, [&](int rank) { return rank_of(rank, rows, dir / "ranks"); }))
    result["ranks"].push_back(std::move(rank));
  for (int repeat = 0; repeat < 3; ++repeat)
    alone([&] { return second_run(rows, dir / "ranks"); });
  std::filesystem::remove_all(dir);
  return finish(result);
}
