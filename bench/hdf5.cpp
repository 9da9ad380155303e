// How fast are compressed chunks of HDF5 read, beside pread and libdeflate
// alone?
//
// 100,000 rows of 256 float32 (1 KB each) in chunks of 64 rows, shuffle and
// deflate level 4, from the page cache: spectra in steps of 1/8 dB. The floor
// reads and inflates each chunk into one buffer and gives nothing to anybody;
// its bytes are then still shuffled. Ours gives rows, in their order, or by
// their positions in an order of pages of 64 rows and windows of 64 pages. CPU
// is that of all threads, which noise of other programs changes least.
//
//     bench_hdf5 [REPEATS [ROWS]]
#include <hdf5.h>
#include <libdeflate.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "bench/measure.h"
#include "penstock/base/host_limits.h"
#include "penstock/sampling/sampling.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

constexpr hsize_t kValues = 256, kChunkRows = 64;
constexpr std::size_t kChunkBytes = kChunkRows * kValues * sizeof(float);
constexpr std::int64_t kBatch = 1024;
constexpr double kDecodedGib = 0.016;  // four windows

/// Where the chunks lie, and what they hold when decoded.
struct Written {
  std::string path;
  std::vector<std::pair<haddr_t, hsize_t>> chunks;
  std::int64_t rows = 0;
  double megabytes() const {
    return static_cast<double>(rows) * kValues * sizeof(float) / 1e6;
  }
};

Written written(const std::string& path, std::int64_t rows) {
  std::vector<float> x(static_cast<std::size_t>(rows) * kValues);
  Random random(1, 0, 0, 0);
  float level = 0;
  for (std::size_t at = 0; at < x.size(); ++at) {
    const auto bits = random.next();
    const double noise = static_cast<double>(bits >> 40) / (1 << 24) - 0.5;
    level = 0.9F * level + static_cast<float>(6 * noise);
    x[at] = std::round(8 * (level - 40)) / 8;
  }
  const hid_t file =
      H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t dims[] = {static_cast<hsize_t>(rows), kValues},
                chunk[] = {kChunkRows, kValues};
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(how, 2, chunk);
  H5Pset_shuffle(how);
  H5Pset_deflate(how, 4);
  const hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT,
                               how, H5P_DEFAULT);
  H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x.data());
  H5Fflush(file, H5F_SCOPE_LOCAL);
  Written done{.path = path, .chunks = {}, .rows = rows};
  hsize_t chunks = 0;
  H5Dget_num_chunks(set, space, &chunks);
  for (hsize_t at = 0; at < chunks; ++at) {
    haddr_t place = 0;
    hsize_t size = 0, offset[2] = {};
    unsigned skipped = 0;
    H5Dget_chunk_info(set, space, at, offset, &skipped, &place, &size);
    done.chunks.emplace_back(place, size);
  }
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(how);
  H5Fclose(file);
  return done;
}

void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { work(t); });
  work(0);
}

void floor(const Written& file, int threads) {
  std::atomic<std::size_t> next{0};
  on_threads(threads, [&](int) {
    const Descriptor opened = files::open_file(file.path);
    libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();
    std::string stored;
    std::vector<char> out(kChunkBytes);
    for (std::size_t at; (at = next++) < file.chunks.size();) {
      stored.resize(file.chunks[at].second);
      files::read_at(opened, static_cast<std::int64_t>(file.chunks[at].first),
                     stored);
      libdeflate_zlib_decompress(inflater, stored.data(), stored.size(),
                                 out.data(), out.size(), nullptr);
    }
    libdeflate_free_decompressor(inflater);
  });
}

std::unique_ptr<Source> opened(const Written& file) {
  Json section;
  section["kind"] = "hdf5";
  section["path"] = file.path;
  section["decoded_gib"] = kDecodedGib;
  return open_source(parse_source_spec(section, "source"),
                     {{.column = "/x", .as = ReadAs::value, .setting = "x"}});
}

/// Something of every 64 bytes, so that none is left unread.
std::uint64_t sum_of(const Block& block) {
  const Column& x = block.columns[0];
  std::uint64_t sum = 0;
  const auto words = x.values.as<std::uint32_t>().subspan(
      static_cast<std::size_t>(x.first) * kValues,
      static_cast<std::size_t>(block.rows) * kValues);
  for (std::size_t at = 0; at < words.size(); at += 16) sum += words[at];
  return sum;
}

std::uint64_t in_order(Source& source, int threads) {
  const std::vector<Partition> parts = source.partitions(threads);
  std::atomic<std::uint64_t> sum{0};
  on_threads(threads, [&](int t) {
    auto reader = open_checked_reader(source);
    for (std::size_t p = static_cast<std::size_t>(t); p < parts.size();
         p += static_cast<std::size_t>(threads))
      reader->scan(parts[p], {}, [&](KeyList&, Block& block) {
        sum += sum_of(block);
        return true;
      });
  });
  return sum;
}

/// Rows in an order in pages; it is ready before the time is taken.
std::vector<SampleId> paged(std::int64_t rows) {
  const Order order{.samples = rows,
                    .seed = 1,
                    .batch_size = kBatch,
                    .pages = {.page = kChunkRows, .window = 64}};
  std::vector<SampleId> samples(static_cast<std::size_t>(rows));
  for (std::int64_t at = 0; at < rows; ++at)
    samples[static_cast<std::size_t>(at)] = sample_at(order, 0, at);
  return samples;
}

std::uint64_t by_page(Source& source, const std::vector<SampleId>& samples,
                      int threads) {
  const std::int64_t rows = std::ssize(samples);
  std::atomic<std::int64_t> next{0};
  std::atomic<std::uint64_t> sum{0};
  on_threads(threads, [&](int) {
    auto reader = open_checked_reader(source);
    Block block;
    for (std::int64_t at; (at = next.fetch_add(kBatch)) < rows;) {
      const auto count = static_cast<std::size_t>(std::min(kBatch, rows - at));
      reader->read(std::span<const std::int64_t>(samples).subspan(
                       static_cast<std::size_t>(at), count),
                   block);
      sum += sum_of(block);
    }
  });
  return sum;
}

Json measured(const Written& file, int threads, int repeats) {
  auto source = opened(file);
  const std::vector<SampleId> samples = paged(file.rows);
  PENSTOCK_ASSERT(in_order(*source, 1) == by_page(*source, samples, threads) &&
                      in_order(*source, threads) == in_order(*source, 1),
                  "each order gives each value once");
  std::vector<std::function<void()>> work = {
      [&] { floor(file, threads); }, [&] { in_order(*source, threads); },
      [&] { by_page(*source, samples, threads); }};
  const char* const names[] = {"pread_libdeflate", "in_order", "by_page"};
  std::vector<std::function<double()>> cpu;
  std::vector<Repeats> walls(work.size());
  for (std::size_t w = 0; w < work.size(); ++w)
    cpu.push_back([&, w] {
      const double before = process_cpu_seconds();
      walls[w].add(file.megabytes() / wall_seconds(work[w]));
      return file.megabytes() / (process_cpu_seconds() - before);
    });
  const std::vector<Repeats> found = in_turns(repeats, cpu);
  Json json;
  json["threads"] = threads;
  for (std::size_t w = 0; w < work.size(); ++w) {
    json[names[w]]["mb_per_s"] = walls[w].json();
    json[names[w]]["mb_per_cpu_s"] = found[w].json();
    json[names[w]]["of_floor_by_cpu"] = found[w].median() / found[0].median();
  }
  return json;
}

int run(int count, char** arguments) {
  const auto repeats = static_cast<int>(argument(count, arguments, 1, 5));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "penstock_bench_hdf5";
  std::filesystem::create_directories(folder);
  const Written file =
      written(folder / "x.h5", argument(count, arguments, 2, 100'000));
  Json result = result_of("hdf5",
                          "How fast are compressed chunks of HDF5 read, beside "
                          "pread and libdeflate "
                          "alone?",
                          count, arguments);
  result["rows"] = file.rows;
  result["mb"] = file.megabytes();
  result["file_mb"] =
      static_cast<double>(std::filesystem::file_size(file.path)) / 1e6;
  const auto cpus = static_cast<int>(std::max(1.0, read_cpu_limit()));
  for (int threads = 1; threads <= cpus; threads *= 2)
    result["workloads"].push_back(measured(file, threads, repeats));
  std::filesystem::remove_all(folder);
  return finish(result);
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  return penstock::run(count, arguments);
}
