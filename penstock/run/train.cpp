#include "penstock/run/train.h"

#include "penstock/run/loop.h"
#include "penstock/run/prepare.h"
#include "penstock/run/trainer_plugin.h"

namespace penstock {
namespace {

void write_quarantine(RunFolder& folder, const TableDataset& dataset) {
  std::string lines;
  for (const BadRow& row : dataset.quarantine()) {
    Json entry;
    entry["key"] = row.key;
    entry["column"] = row.column;
    entry["why"] = row.why;
    if (row.byte >= 0) entry["byte"] = row.byte;
    lines += (lines.empty() ? "" : "\n") + entry.dump();
  }
  std::int64_t more = dataset.bad_rows() - std::ssize(dataset.quarantine());
  if (more > 0) {
    Json entry;
    entry["more"] = more;
    lines += "\n" + entry.dump();
  }
  folder.append("quarantine.jsonl", lines);
}

/// What a device that takes no steps did is the host's time.
StepParts without_compute(StepParts parts) {
  parts.host += parts.compute;
  parts.compute = Nanoseconds(0);
  return parts;
}

std::shared_ptr<const TableDataset> prepare(const Job& job,
                                            const TrainOptions& options,
                                            const Resumption& from,
                                            Device& device) {
  auto scanning = [&](const std::string& limit) {
    if (options.listener.note)
      options.listener.note("the initial scan may hold " + limit);
  };
  auto planned = [&](const TierPlan& plan) {
    if (options.listener.note)
      options.listener.note("where the rows will live:\n" + plan.text());
  };
  std::shared_ptr<const TableDataset> dataset =
      prepare_rows(job, device,
                   {.stop = options.stop,
                    .statistics = from.statistics,
                    .scanning = scanning,
                    .planned = planned});
  log(LogLevel::info, "prepared " + std::to_string(dataset->rows()) +
                          " rows, fingerprint " + dataset->fingerprint());
  return dataset;
}

std::unique_ptr<Stepper> make_stepper(const Job& job, const TableDataset& data,
                                      Device& device, std::int64_t steps) {
  if (job.model.none()) return std::make_unique<DeviceStepper>(device);
  return open_model(job.model, data, device, steps);
}

/// The numbers of a finished loop, for the report and the verdict.
void take_numbers(Loop& loop, const Stepper& stepper, const TableDataset& data,
                  const Job& job, RunNumbers& run) {
  run.snapshot.parts = loop.clock().total();
  for (const auto& [epoch, parts] : loop.clock().by_group())
    run.epochs[epoch].parts = parts;
  if (!stepper.takes_time()) {
    run.snapshot.parts = without_compute(run.snapshot.parts);
    for (auto& [number, epoch] : run.epochs)
      epoch.parts = without_compute(epoch.parts);
  }
  run.snapshot.stages = loop.loader().stages();
  run.snapshot.wait_order = loop.loader().wait_order();
  run.snapshot.virtual_time = job.device.virtual_time;
  run.snapshot.tiers = tiers_of(data.plan());
  run.snapshot.limits = read_host_limits();
  run.snapshot.use = read_host_use();
}

}  // namespace

Job job_of_run(const std::string& run_folder) {
  std::string path = run_folder + "/run.json";
  Json run;
  try {
    run = Json::parse(real_files().read(path), path);
  } catch (const Error& error) {
    if (error.parts().code == "file.current_folder") throw;
    throw Error(ErrorKind::request,
                {.code = "resume.no_run",
                 .what = "cannot resume the run",
                 .where = path,
                 .why = error.parts().why,
                 .next = "name a folder that a run has written"});
  }
  const Json* job = run.is_object() ? run.find("job") : nullptr;
  if (job == nullptr)
    throw Error(ErrorKind::request, {.code = "resume.no_run",
                                     .what = "cannot resume the run",
                                     .where = path,
                                     .why = "it holds no job",
                                     .next = "name a folder that a run has "
                                             "written"});
  return parse_job(*job);
}

TrainResult train(const Job& job, const TrainOptions& options) {
  RunNumbers run;
  run.started = wall_clock().now();
  Resumption from;
  if (!options.resume.empty()) from = read_resumption(options.resume);
  SavedState& state = from.state;
  if (!from.warning.empty()) log(LogLevel::warning, from.warning);
  check_same_fields(state, job);

  std::unique_ptr<Device> device = open_device(job.device);
  check_model_device(job.model, device->memory_kind());
  if (!job.model.none())  // what is missing is heard before the table is read
    device = training_device(std::move(device), job.device, load_trainer());
  RunFolder folder(real_files(), job.output.dir,
                   run_json(job, *device, options.resume));
  run.folder = folder.path().string();
  log(LogLevel::info, "run folder " + run.folder);
  Checkpoints checkpoints(folder);
  try {
    if (from.statistics) checkpoints.save_statistics(*from.statistics, state);
    checkpoints.save(state, from.model ? &*from.model : nullptr);
    folder.become_latest();
  } catch (const Error&) {
    folder.discard();
    throw;
  }
  // From here on the run can be resumed, however it ends.

  TrainResult result;
  auto finish = [&](const TableDataset* data) {
    result.report = report_json(run, job, data, *device);
    result.report["interrupted"] = result.interrupted;
    folder.write("report.json", result.report);
    return result;
  };
  std::shared_ptr<const TableDataset> data;
  try {
    data = prepare(job, options, from, *device);
  } catch (const Error& error) {
    if (!is_stop(error)) throw;
    result.interrupted = true;
    return finish(nullptr);
  }
  write_quarantine(folder, *data);
  checkpoints.save_statistics(data->statistics(), state);
  Order order = order_of(loader_options(job, Side::train), *data);
  check_goes_on(state, *data, order, job.split);
  state.fingerprint = data->fingerprint();
  state.order = order_json(order, job.split);
  state.fields = recipes_of(job);

  std::int64_t steps = steps_in_all(job, order);
  std::unique_ptr<Stepper> stepper = make_stepper(job, *data, *device, steps);
  if (from.model) stepper->restore(*from.model);
  Loop loop({.job = job,
             .options = options,
             .device = *device,
             .data = data,
             .folder = folder,
             .stepper = *stepper,
             .checkpoints = checkpoints,
             .run = run,
             .state = state},
            steps);
  result.interrupted = !loop.run();
  take_numbers(loop, *stepper, *data, job, run);
  warn_if_starved(run.snapshot, options.listener);
  return finish(data.get());
}

}  // namespace penstock
