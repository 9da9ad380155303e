// How far is the way from a database's rows to padded, standardised arrays
// from what its slowest serial stage and the machine's cores allow?
//
// The demo's rows, of about 1 KB, with the fields of the quick start's job.
// Per row: the processor time of each stage, taken on one thread; the floors,
// which are a plain loop over the database's own library and a plain simdjson
// loop; and the rate that the pass reaches with all cores, opening included.
//
//     bound = min(1 / slowest serial stage, cores / processor time per row)
//
// Serial are reading and the server, each shared out over the connections, and
// packing. The processor time is all that a row takes, the server's included;
// parsing alone enters with its own target, 0.65 x the plain simdjson loop,
// whatever it really took. `pass` is what this process spent in a pass with all
// cores: beyond read + prepare + pack it is what busy cores cost each other.
// `strict_ratio` is measured by a bound to which what else is done with parsed
// rows (keys, hashes, counts, memory) adds nothing.
//
//     bench_db_to_batches [ROWS [REPEATS]]
//
// PostgreSQL is measured where PENSTOCK_BENCH_POSTGRES holds the URI of a
// server on this machine that nobody else uses; tables bench_jsonb, bench_json
// and bench_text are made there (again).
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "bench/drain.h"
#include "bench/measure.h"
#include "bench/our_json.h"
#include "bench/plain_json.h"
#include "bench/positions.h"
#include "bench/server_cpu.h"
#include "penstock/demo/positions.h"
#include "penstock/job/job.h"

namespace penstock {
namespace {

struct PostgresWorkload {
  const char* json_type;
  int connections;
};
const PostgresWorkload kPostgres[] = {{"jsonb", 1}, {"jsonb", 2}, {"json", 1},
                                      {"json", 2},  {"text", 1},  {"text", 2}};

constexpr double kParseTarget = 0.65;  // x the plain simdjson loop
constexpr std::int64_t kParsedRows = 20000;
constexpr std::int64_t kBlockRows = 1024;  // as the loader asks for

/// One way to the rows.
struct Workload {
  std::string name;
  TableDatasetOptions options;
  LoaderOptions loading;
  std::function<std::optional<Drained>()> drain;
  bool server = false;
};

/// Processor time by stage, in seconds for all rows.
struct StageCosts {
  Repeats read, prepare, pack, server;
};

Workload workload_of(std::string name, const Json& document) {
  Job job = parse_job(document);
  return {.name = std::move(name),
          .options = dataset_options(job, MemoryKind::cpu),
          .loading = loader_options(job, Side::train)};
}

Workload sqlite_workload(const Positions& data) {
  Json document = data.job();
  document["split"] = Json(Json::Object{});
  document["loader"]["tail"] = "exact";
  Workload work = workload_of("sqlite", document);
  work.drain = [path = data.path()] {
    return drain_sqlite(path, "measurements");
  };
  return work;
}

Workload postgres_workload(const Positions& data, const std::string& uri,
                           const PostgresWorkload& given) {
  std::string table = std::string("bench_") + given.json_type;
  Json document = data.job();
  document["split"] = Json(Json::Object{});
  document["loader"]["tail"] = "exact";
  document["source"] = Json(Json::Object{});
  document["source"]["kind"] = "postgres";
  document["source"]["uri"] = uri;
  document["source"]["table"] = table;
  document["source"]["connections"] = given.connections;
  Workload work =
      workload_of(std::string("postgres ") + given.json_type + ", " +
                      std::to_string(given.connections) +
                      (given.connections == 1 ? " connection" : " connections"),
                  document);
  work.server = true;
  work.drain = [uri, table, connections = given.connections] {
    return drain_postgres(uri, table, connections);
  };
  return work;
}

double server_seconds(const Workload& work) {
  return work.server ? postgres_cpu_seconds().value_or(NAN) : 0;
}

/// The scan on one thread, so that the processor time of each stage is known.
void add_stage_costs(const Workload& work, Device& device, StageCosts& costs) {
  TableDatasetOptions options = work.options;
  options.workers = 0;
  double server = server_seconds(work);
  auto dataset = TableDataset::prepare(options, device);
  for (const StageNumbers& stage : dataset->facts().scan->stages) {
    double cpu = seconds(stage.busy_cpu);
    if (stage.work == StageWork::reads) costs.read.add(cpu);
    if (stage.work == StageWork::parses) costs.prepare.add(cpu);
    if (stage.name == "store") costs.pack.add(cpu);
  }
  costs.server.add(server_seconds(work) - server);
}

/// The texts of the first rows, in blocks.
std::vector<Column> some_texts(const Workload& work) {
  std::unique_ptr<Source> source =
      open_source(work.options.source, requests_of(work.options));
  std::vector<Column> texts;
  std::int64_t rows = 0;
  for (const Partition& partition : source->partitions(1))
    source->open_reader()->scan(partition, {.rows = kBlockRows},
                                [&](KeyList&, Block& block) {
                                  rows += block.rows;
                                  texts.push_back(std::move(block.columns[0]));
                                  return rows < kParsedRows;
                                });
  return texts;
}

/// Seconds per row of parsing alone, ours and the plain simdjson loop.
struct Parsing {
  Repeats ours, plain;
};

Parsing parsing_alone(const Workload& work, int repeats) {
  std::vector<Column> texts = some_texts(work);
  const FieldFacts& facts = work.options.fields[0].kind->facts();
  const JsonSet set{.column = facts.columns[0].column,
                    .keys = facts.set->keys,
                    .max = static_cast<int>(facts.outputs[0].row_shape[0]),
                    .overflow = JsonSet::Overflow::strongest,
                    .sort_by = "snr_db"};
  OurJson ours(set);
  PlainJson plain(set.keys, "signal_present");
  std::int64_t rows = 0;
  for (const Column& column : texts) rows += column.length;
  auto timed = [&](auto& parser) {
    return cpu_seconds([&] {
             for (const Column& column : texts) parser.parse(column);
           }) /
           static_cast<double>(rows);
  };
  std::vector<Repeats> times = in_turns(
      repeats, {[&] { return timed(ours); }, [&] { return timed(plain); }});
  return {std::move(times[0]), std::move(times[1])};
}

/// Seconds from nothing to the last batch of the first epoch.
double first_epoch(const Workload& work, Device& device) {
  return wall_seconds([&] {
    auto dataset = TableDataset::prepare(work.options, device);
    std::unique_ptr<Stream> stream = device.make_stream();
    Loader loader(dataset, work.loading, device);
    for (std::int64_t left = loader.steps_per_epoch(); left > 0; --left)
      loader.next(*stream);
    stream->synchronize();
  });
}

Json scaled(const Repeats& from, double by) {
  Json json = from.json();
  for (const char* key : {"median", "min", "max"})
    json[key] = by * json[key].number();
  return json;
}

/// All that is timed of a workload.
struct Timing {
  StageCosts costs;
  Repeats scan_cpu;  // of this process, with all workers
  Repeats scan, first_epoch, drain;
  Parsing parsing;
  bool drained = false;  // by the database's own library
};

Timing time_all(const Workload& work, int repeats) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  Timing timing;
  timing.drained = work.drain().has_value();
  auto scan = [&] {
    double cpu = process_cpu_seconds();
    double wall =
        wall_seconds([&] { TableDataset::prepare(work.options, *device); });
    timing.scan_cpu.add(process_cpu_seconds() - cpu);
    return wall;
  };
  auto stages = [&] {
    add_stage_costs(work, *device, timing.costs);
    return 0.0;
  };
  std::vector<Repeats> times = in_turns(
      repeats, {scan, [&] { return first_epoch(work, *device); },
                [&] { return wall_seconds([&] { work.drain(); }); }, stages});
  timing.scan = std::move(times[0]);
  timing.first_epoch = std::move(times[1]);
  timing.drain = std::move(times[2]);
  timing.parsing = parsing_alone(work, repeats);
  return timing;
}

Json measure(const Workload& work, std::int64_t rows, int repeats) {
  const Timing timing = time_all(work, repeats);
  const StageCosts& costs = timing.costs;
  const Parsing& parsing = timing.parsing;
  auto count = static_cast<double>(rows);
  double cores = read_host_limits().cpus;
  double connections = work.server ? work.options.source.connections : 1;

  double read = costs.read.median() / count;
  double pack = costs.pack.median() / count;
  double server = costs.server.median() / count;
  double parse = kParseTarget * parsing.plain.median();
  double rest =  // of preparing: all but parsing
      std::max(0.0, costs.prepare.median() / count - parsing.ours.median());
  double serial = std::max({read / connections, server / connections, pack});
  double all = read + parse + rest + pack + server;
  double bound = std::min(1 / serial, cores / all);
  double strict = std::min(1 / serial, cores / (all - rest));
  double achieved = count / timing.scan.median();

  constexpr double kMicro = 1e6;
  Json result;
  result["workload"] = work.name;
  result["cores"] = cores;
  result["workers"] = work.options.workers;
  Json& cpu = result["cpu_us_per_row"];
  cpu["read"] = scaled(costs.read, kMicro / count);
  cpu["prepare"] = scaled(costs.prepare, kMicro / count);
  cpu["pack"] = scaled(costs.pack, kMicro / count);
  cpu["pass"] = scaled(timing.scan_cpu, kMicro / count);
  cpu["parsing_alone"] = scaled(parsing.ours, kMicro);
  if (work.server) cpu["server"] = scaled(costs.server, kMicro / count);
  Json& floors = result["floor_us_per_row"];
  floors["drain"] =
      timing.drained ? scaled(timing.drain, kMicro / count) : Json();
  floors["simdjson"] = scaled(parsing.plain, kMicro);
  result["parse_target_us_per_row"] = kMicro * parse;
  result["slowest_serial_us_per_row"] = kMicro * serial;
  result["all_cpu_us_per_row"] = kMicro * all;
  result["bound_rows_per_s"] = bound;
  result["pass_seconds"] = timing.scan.json();
  result["rows_per_s"] = achieved;
  result["ratio"] = achieved / bound;
  result["must_reach"] = "ratio >= 0.8";
  result["strict_ratio"] = achieved / strict;
  result["first_epoch_seconds"] = timing.first_epoch.json();
  return result;
}

// A plugin or a server that is missing is no reason to fail.
void measure_postgres(const Positions& data, std::int64_t rows, int repeats,
                      Json& result) {
  const char* uri = std::getenv("PENSTOCK_BENCH_POSTGRES");
  if (uri == nullptr) {
    result["postgres"] = "skipped: PENSTOCK_BENCH_POSTGRES is not set";
    return;
  }
  try {
    std::string written;
    for (const PostgresWorkload& given : kPostgres) {
      Workload work = postgres_workload(data, uri, given);
      if (written != given.json_type)
        write_positions_demo({.rows = rows,
                              .to = work.options.source,
                              .json_type = given.json_type,
                              .replace = true});
      written = given.json_type;
      result["results"].push_back(measure(work, rows, repeats));
    }
  } catch (const Error& error) {
    result["postgres"] = std::string("skipped: ") + error.what();
  }
}

double bytes_per_row(const Workload& work) {
  std::int64_t bytes = 0, rows = 0;
  for (const Column& column : some_texts(work)) {
    bytes += static_cast<std::int64_t>(column.values.size());
    rows += column.length;
  }
  return static_cast<double>(bytes) / static_cast<double>(rows);
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 200'000);
  auto repeats = static_cast<int>(argument(count, arguments, 2, 5));
  Json result = result_of("db_to_batches",
                          "How far is the way from a database's rows to padded,"
                          " standardised arrays from what its slowest serial "
                          "stage and the cores allow?",
                          count, arguments);
  Positions data(rows);
  Workload sqlite = sqlite_workload(data);
  result["rows"] = rows;
  result["json_bytes_per_row"] = bytes_per_row(sqlite);
  result["simdjson"] = simdjson_version();
  result["simdjson_instructions"] = simdjson_instructions();
  result["results"].push_back(measure(sqlite, rows, repeats));
  measure_postgres(data, rows, repeats, result);
  return finish(result);
}
