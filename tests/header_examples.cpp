// The examples in the public headers of the rooms, one function for each:
// tools/check_rooms.py sees to it that they stay the same.
#include <cstdio>

#include "penstock/advisor/advisor.h"
#include "penstock/demo/demo.h"
#include "penstock/exec/exec.h"
#include "penstock/run/run.h"
#include "penstock/trainer/trainer.h"

namespace penstock::examples {

void base() {
  Json json = Json::parse(R"({"seed": 7})", "job.json");
  Spec spec(json, "");
  std::int64_t seed = spec.integer("seed", 0, 0, 9999);
  spec.finish();  // refuses unknown keys and names the nearest
  double noise = Random(std::uint64_t(seed), 0, 42, 0).normal();
  log(LogLevel::info, "the noise of sample 42: " + std::to_string(noise));
}

void exec() {
  Queue<int> numbers(4);
  std::atomic<int> sum{0};
  Stage adders({.name = "add", .workers = 2, .body = [&](int) {
                  while (auto number = numbers.pop()) sum += *number;
                }});
  for (int i = 0; i < 100; ++i) numbers.push(i);
  numbers.close();
  adders.join();
}

void device(std::span<const std::byte> bytes) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  std::unique_ptr<Stream> stream = device->make_stream();
  Buffer memory = device->allocate(bytes.size());
  stream->copy(memory.data(), bytes.data(), bytes.size());
  Event copied = stream->record();
  copied.wait();
}

void sources() {
  SourceSpec spec = parse_source_spec("sqlite:demo.sqlite#t", "source");
  auto source = open_source(spec, {{.column = "x"}, {.column = "y"}});
  auto reader = source->open_reader();
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {.rows = 1024}, [](KeyList& keys, Block& block) {
      std::printf("row %s: %g\n", keys.shown(0).c_str(),
                  block.columns[0].as_float64(0));
      return true;
    });
}

std::vector<Field> transforms() {
  std::vector<Field> fields = parse_fields(
      Json::parse(R"({"place": {"columns": ["lat", "lon"]}})", "test"),
      "fields");
  RowLayout row = layout_of(fields);  // place: float32 [2]
  std::printf("%zu bytes a row\n", row.row_bytes);
  return fields;
}

void sampling() {
  Order order{.samples = 100'000, .seed = 7, .batch_size = 64};
  Position at{.epoch = 3, .step = 10};
  Plan plan;
  plan_step(order, {.rank = 1, .world = 4}, at, plan);
  for (const SampleRange& range : plan.ranges)
    std::printf("%lld\n", static_cast<long long>(range.sample));
}

void cache() {
  HostLimits host = read_host_limits();
  TierPlan plan =
      plan_tiers({.rows = 1'000'000, .row_bytes = 288},
                 {.ram_free = host.memory_free, .device_is_host = true});
  std::printf("%s", plan.text().c_str());
}

void monitor(Device& device, Stream& stream, const Event& ready) {
  StepClock steps(device.clock());
  for (std::uint64_t number = 0; number < 10; ++number) {
    steps.ask();  // here the loop waits for its batch
    steps.got(stream);
    stream.wait(ready);
    steps.after_wait(stream);
    stream.step(number);
    steps.after_step(stream);
  }
  steps.finish();
  std::printf("AU %.2f\n", steps.total().utilisation());
  MachineSeries series({});
  for (int second = 0; second < 10; ++second) {
    wall_clock().sleep_until(wall_clock().now() + from_seconds(1));
    series.sample();
  }
  std::puts(series.summary().dump(2).c_str());
}

void dataset(Device& device, const SourceSpec& spec,
             const std::vector<Field>& fields) {
  TableDatasetOptions options{{.source = spec, .fields = fields}};
  auto rows = TableDataset::prepare(options, device);
  std::printf("%lld rows, fingerprint %s\n",
              static_cast<long long>(rows->rows()),
              rows->fingerprint().c_str());
}

void loader(std::shared_ptr<const Dataset> rows, Device& device,
            Stream& stream) {
  Loader loader(rows, {.batch_size = 64, .workers = 2, .batches = 1000},
                device);
  while (std::optional<Batch> batch = loader.next(stream))
    stream.step(static_cast<std::uint64_t>(batch->at().step));
}

void job() {
  Job job = load_job("job.json", {"loader.batch_size=512"});
  LoaderOptions options = loader_options(job, Side::train);
  std::printf("%lld\n", static_cast<long long>(options.batch_size));
}

void advisor(const Snapshot& window) {
  Verdict verdict = diagnose(window);
  std::printf("%s\n", verdict.cause.c_str());
  for (const Action& action : verdict.actions)
    std::printf("set %s to %s\n", action.knob.c_str(),
                action.to.dump().c_str());
}

void run() {
  TrainResult result = train(load_job("job.json", {}), {});
  std::printf("%s\n", result.report.dump(2).c_str());
}

void trainer(const ModelSpec& model, const FittedFields& data, Loader& loader,
             Device& device) {
  auto stepper = make_stepper(model, data, device, 100);
  std::unique_ptr<Stream> stream = device.make_stream();
  for (std::int64_t step = 0; step < 100; ++step) {
    auto batch = std::make_shared<Batch>(loader.next(*stream).value());
    stepper->step(batch, *stream, step);
  }
  std::printf("loss %g\n", stepper->losses(true).back());
}

void demo() {
  SourceSpec to = parse_source_spec("sqlite:demo.sqlite", "to");
  write_positions_demo({.rows = 4030, .seed = 1, .to = to});
}

}  // namespace penstock::examples
