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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bench/measure.h"
#include "penstock/dataset/table_dataset.h"

namespace penstock {
namespace {

constexpr int kColumns = 32;
constexpr double kMiB = 1 << 20;

/// Rows with keys, some of which are not usable.
class MadeSource final : public Source {
 public:
  MadeSource(std::int64_t rows, std::int64_t bad, bool scrambled)
      : Source({.shown = "made rows",
                .schema = {},
                .types = std::vector<ColumnType>(
                    kColumns, ColumnType::number(Dtype::float32)),
                .abilities = {.by_key = true}}),
        rows_(rows + bad),
        bad_(bad),
        order_(rows + bad, 1),
        scrambled_(scrambled) {}

  RowCount count() const override { return {rows_, true}; }
  std::vector<Partition> partitions(int readers) override {
    std::vector<Partition> parts;
    for (std::int64_t r = 0; r < readers; ++r)
      parts.push_back({.index = r,
                       .first = rows_ * r / readers,
                       .end = rows_ * (r + 1) / readers});
    return parts;
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<MadeReader>(*this);
  }

 private:
  class MadeReader final : public Reader {
   public:
    explicit MadeReader(const MadeSource& source) : source_(source) {}
    void scan(const Partition& part, BlockLimit limit,
              const BlockSink& sink) override {
      KeyList keys;
      Block block;
      for (std::int64_t first = part.first; first < part.end;
           first += limit.rows) {
        std::int64_t end = std::min(part.end, first + limit.rows);
        source_.make(first, end, keys, block);
        if (!sink(keys, block)) return;
      }
    }
    void read(const ReadRequest&, Block&) override {}

   private:
    const MadeSource& source_;
  };

  void make(std::int64_t first, std::int64_t end, KeyList& keys,
            Block& block) const {
    keys.clear();
    block = Block();
    block.rows = end - first;
    for (std::int64_t row = first; row < end; ++row)
      keys.append_integer(scrambled_ ? order_(row) : row);
    std::vector<float> values(static_cast<std::size_t>(block.rows));
    for (int c = 0; c < kColumns; ++c) {
      for (std::int64_t row = 0; row < block.rows; ++row)
        values[static_cast<std::size_t>(row)] =
            static_cast<float>(keys.integer(row) % 1000 + c);
      // Every third row is bad, as long as there are bad ones to give.
      for (std::int64_t row = 0; c == 0 && row < block.rows; ++row)
        if (bad_ > 0 && (first + row) % (rows_ / bad_) == 0 &&
            (first + row) / (rows_ / bad_) < bad_)
          values[static_cast<std::size_t>(row)] = NAN;
      Column column{.type = ColumnType::number(Dtype::float32)};
      column.length = block.rows;
      column.values.resize(values.size() * sizeof(float));
      std::memcpy(column.values.mutable_data<float>(), values.data(),
                  values.size() * sizeof(float));
      block.columns.push_back(std::move(column));
    }
  }

  const std::int64_t rows_, bad_;
  const Permutation order_;
  const bool scrambled_;
};

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

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void prepare(const Workload& work, const TableDatasetOptions& options,
             std::int64_t rows, std::int64_t bad, Device& device,
             Json& result) {
  auto set = TableDataset::prepare(
      options,
      std::make_unique<MadeSource>(rows, work.bad ? bad : 0, work.scrambled),
      device);
  result["left_out"] = set->left_out();
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
  Json columns;
  for (int c = 0; c < kColumns; ++c) columns.push_back("c" + std::to_string(c));
  Json fields;
  fields["x"]["columns"] = columns;
  options.fields = parse_fields(fields, "fields");
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
  double values = static_cast<double>(rows) * kColumns * sizeof(float) / kMiB;
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
  int ends[2];
  PENSTOCK_ASSERT(::pipe(ends) == 0, "a pipe opens");
  pid_t child = ::fork();
  PENSTOCK_ASSERT(child >= 0, "a process starts");
  if (child == 0) {
    std::string text = prepare(work, rows, bad).dump();
    bool sent = ::write(ends[1], text.data(), text.size()) ==
                static_cast<ssize_t>(text.size());
    std::_Exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof(part))) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  PENSTOCK_ASSERT(status == 0, "preparing ends well");
  return Json::parse(text, "the child's result");
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
