// How close does a loader over arrays in memory come to a loop of memcpy by
// index, which is what index_select by hand does?
//
// Batches of 8192 rows in random order out of arrays of 200,000 rows (200 MB):
// x of 256 float32 a row, and a label y of int64. The loop has the shuffled row
// numbers ready, takes no part of its time for them, and copies into four
// batches in turns, as a loader does that prepares two ahead; shared out among
// threads that stand by. The consumer does nothing with a batch. Every batch of
// one epoch is compared with the arrays first.
//
//     bench_arrays [REPEATS [ROWS]]
#include <barrier>
#include <cstring>
#include <thread>

#include "bench/measure.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  bool huge_pages;  ///< as numpy's memory has them; torch's own has not
};
const Workload kWorkloads[] = {{"arrays in huge pages", true},
                               {"arrays in pages of 4 KiB", false}};

constexpr std::int64_t kBatch = 8192;
constexpr std::int64_t kColumns = 256;
constexpr std::size_t kRowBytes = kColumns * sizeof(float);
constexpr std::size_t kSlots = 4;

/// Memory that was written to.
std::shared_ptr<std::byte> filled(std::size_t bytes, bool huge_pages) {
  std::shared_ptr<std::byte> memory;
  if (huge_pages)
    memory = allocate_aligned(bytes);
  else
    memory = {new std::byte[bytes], std::default_delete<std::byte[]>()};
  Random random(1, 0, bytes, 0);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    std::uint64_t number = random.next();
    std::memcpy(memory.get() + at, &number, 8);
  }
  return memory;
}

std::vector<NamedArray> arrays_of(std::int64_t rows, bool huge_pages) {
  auto count = static_cast<std::size_t>(rows);
  auto x = filled(count * kRowBytes, huge_pages);
  auto y = filled(count * sizeof(std::int64_t), huge_pages);
  return {{"x", {.data = x.get(), .shape = {rows, kColumns}}, x},
          {"y", {.data = y.get(), .dtype = Dtype::int64, .shape = {rows}}, y}};
}

/// index_select by hand: a loop of memcpy, on threads that wait for the next
/// batch.
class Loop {
 public:
  Loop(const std::vector<NamedArray>& arrays, int threads)
      : x_(arrays[0].view.data),
        y_(arrays[1].view.data),
        shuffled_(arrays[0].view.shape[0], 1),
        threads_(threads),
        start_(threads),
        end_(threads) {
    for (std::int64_t i = 0; i < arrays[0].view.shape[0]; ++i)
      rows_.push_back(static_cast<std::size_t>(shuffled_(i)));
    for (std::size_t s = 0; s < kSlots; ++s) {
      x_out_.push_back(filled(kBatch * kRowBytes, true));
      y_out_.push_back(filled(kBatch * sizeof(std::int64_t), true));
    }
    for (int t = 1; t < threads; ++t)
      others_.emplace_back([this, t] {
        for (;;) {
          start_.arrive_and_wait();
          if (ended_) return;
          copy(t);
          end_.arrive_and_wait();
        }
      });
  }
  ~Loop() {
    ended_ = true;
    start_.arrive_and_wait();
  }

  void next() {
    batch_ = (batch_ + 1) % (rows_.size() / kBatch);
    slot_ = (slot_ + 1) % kSlots;
    start_.arrive_and_wait();
    copy(0);
    end_.arrive_and_wait();
  }

 private:
  void copy(int thread) {
    std::size_t share = kBatch / static_cast<std::size_t>(threads_);
    std::size_t begin = share * static_cast<std::size_t>(thread);
    const std::size_t* rows = rows_.data() + batch_ * kBatch;
    for (std::size_t i = begin; i < begin + share; ++i)
      std::memcpy(x_out_[slot_].get() + i * kRowBytes, x_ + rows[i] * kRowBytes,
                  kRowBytes);
    for (std::size_t i = begin; i < begin + share; ++i)
      std::memcpy(y_out_[slot_].get() + i * 8, y_ + rows[i] * 8, 8);
  }

  const std::byte* x_;
  const std::byte* y_;
  Permutation shuffled_;
  std::vector<std::size_t> rows_;
  std::vector<std::shared_ptr<std::byte>> x_out_, y_out_;
  std::size_t batch_ = 0, slot_ = 0;
  const int threads_;
  bool ended_ = false;
  std::barrier<> start_, end_;
  std::vector<std::jthread> others_;  // last: they use all the above
};

std::shared_ptr<const Dataset> rows_of(const std::vector<NamedArray>& arrays,
                                       Device& device) {
  return std::make_shared<ArrayDataset>(arrays, ArrayDatasetOptions{}, device);
}

LoaderOptions options_of(int workers) {
  return {.seed = 1, .batch_size = kBatch, .workers = workers};
}

bool holds_its_rows(const Batch& batch, const std::vector<NamedArray>& arrays) {
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    std::size_t bytes = a == 0 ? kRowBytes : sizeof(std::int64_t);
    for (std::size_t i = 0; i < batch.ids().size(); ++i)
      if (std::memcmp(batch.tensors()[a].view.data + i * bytes,
                      arrays[a].view.data +
                          static_cast<std::size_t>(batch.ids()[i]) * bytes,
                      bytes) != 0)
        return false;
  }
  return true;
}

void check(const std::vector<NamedArray>& arrays, int workers, Device& device) {
  Loader loader(rows_of(arrays, device), options_of(workers), device);
  for (std::int64_t i = 0; i < loader.steps_per_epoch(); ++i)
    PENSTOCK_ASSERT(holds_its_rows(*loader.next(), arrays),
                    "a batch holds the rows that its ids name");
}

/// One way to make batches: measures milliseconds a batch, and notes the
/// processor's.
struct Way {
  std::string name;
  std::function<void()> next;
  Repeats cpu = {};

  double measure(std::int64_t batches) {
    double before = process_cpu_seconds();
    double time = wall_seconds([&] {
      for (std::int64_t i = 0; i < batches; ++i) next();
    });
    auto each = [&](double seconds) {
      return 1e3 * seconds / static_cast<double>(batches);
    };
    cpu.add(each(process_cpu_seconds() - before));
    return each(time);
  }
};

Json measure(const Workload& work, std::int64_t rows, int repeats) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  std::vector<NamedArray> arrays = arrays_of(rows, work.huge_pages);
  std::vector<Way> ways;
  std::vector<std::unique_ptr<Loop>> loops;
  for (int threads : {1, 2}) {
    Loop* loop =
        loops.emplace_back(std::make_unique<Loop>(arrays, threads)).get();
    ways.push_back({"loop of memcpy, threads: " + std::to_string(threads),
                    [loop] { loop->next(); }});
  }
  for (int workers : {0, 1, 2}) check(arrays, workers, *device);
  std::int64_t batches = 4 * rows / kBatch;
  std::vector<std::function<double()>> measured;
  for (Way& way : ways)
    measured.push_back([&way, batches] { return way.measure(batches); });
  // A loader works ahead, so it is there only while it is measured.
  std::vector<Way> loaders;
  for (int workers : {0, 1, 2})
    loaders.push_back({"loader, workers: " + std::to_string(workers), {}});
  for (std::size_t w = 0; w < loaders.size(); ++w)
    measured.push_back([&, w] {
      Loader loader(rows_of(arrays, *device), options_of(static_cast<int>(w)),
                    *device);
      for (int i = 0; i < 8; ++i) loader.next();
      loaders[w].next = [&] { loader.next(); };
      return loaders[w].measure(batches);
    });
  std::vector<Repeats> times = in_turns(repeats, measured);
  double best = std::min(times[0].median(), times[1].median());
  Json result;
  result["workload"] = work.name;
  result["rows"] = rows;
  result["batch_size"] = kBatch;
  result["row_bytes"] = kRowBytes + sizeof(std::int64_t);
  result["ways"] = Json::Array{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Way& way = i < ways.size() ? ways[i] : loaders[i - ways.size()];
    Json entry;
    entry["way"] = way.name;
    entry["ms_per_batch"] = times[i].json();
    entry["cpu_ms_per_batch"] = way.cpu.json();
    entry["batches_per_s"] = 1e3 / times[i].median();
    entry["of_the_quicker_loop"] = best / times[i].median();
    result["ways"].push_back(std::move(entry));
  }
  result["must_reach"] =
      "a loader with two workers at least 0.9 of the quicker loop";
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  auto repeats = static_cast<int>(argument(count, arguments, 1, 9));
  std::int64_t rows = argument(count, arguments, 2, 200'000);
  Json result =
      result_of("arrays",
                "How close does a loader over arrays in memory come to a loop "
                "of memcpy by index?",
                count, arguments);
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measure(work, rows, repeats));
  return finish(result);
}
