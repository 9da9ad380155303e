#include "penstock/run/train.h"

#include <cmath>

#include "penstock/run/folder.h"
#include "penstock/run/report.h"

namespace penstock {
namespace {

/// Where an interrupted run stands; what `--resume` reads.
struct SavedState {
  Position position;
  std::int64_t steps_taken = 0;
  std::string fingerprint;
};

Json json_of(const SavedState& state) {
  Json json;
  json["epoch"] = state.position.epoch;
  json["step"] = state.position.step;
  json["steps_taken"] = state.steps_taken;
  json["fingerprint"] = state.fingerprint;
  return json;
}

SavedState read_state(const std::string& run) {
  std::string path = run + "/state.json";
  Json json = Json::parse(real_files().read(path), path);
  Spec spec(json, "state");
  SavedState state;
  state.position.epoch = spec.integer("epoch", {}, 0, INT64_MAX);
  state.position.step = spec.integer("step", {}, 0, INT64_MAX);
  state.steps_taken = spec.integer("steps_taken", {}, 0, INT64_MAX);
  state.fingerprint = spec.text("fingerprint");
  spec.finish();
  return state;
}

void write_quarantine(RunFolder& folder, const Dataset& dataset) {
  std::string lines;
  for (const BadRow& row : dataset.quarantine()) {
    Json entry;
    entry["key"] = row.key;
    entry["column"] = row.column;
    entry["why"] = row.why;
    if (row.byte >= 0) entry["byte"] = row.byte;
    lines += (lines.empty() ? "" : "\n") + entry.dump();
  }
  folder.append("quarantine.jsonl", lines);
}

/// One line per step, written in pieces of about a second.
class StepLog {
 public:
  explicit StepLog(RunFolder& folder) : folder_(folder) {}
  void add(Position at, std::int64_t rows, Nanoseconds since_start,
           std::optional<double> loss) {
    Json entry;
    entry["epoch"] = at.epoch;
    entry["step"] = at.step;
    entry["rows"] = rows;
    entry["seconds"] = seconds(since_start);
    if (loss) entry["loss"] = *loss;
    lines_ += (lines_.empty() ? "" : "\n") + entry.dump();
    if (since_start - written_ < std::chrono::seconds(1)) return;
    written_ = since_start;
    flush();
  }
  void flush() {
    folder_.append("steps.jsonl", lines_);
    lines_.clear();
  }

 private:
  RunFolder& folder_;
  std::string lines_;
  Nanoseconds written_{0};
};

/// Tells the listener ten times a second, with the parts since it last did.
class Teller {
 public:
  Teller(const TrainListener& listener, StepClock& clock,
         std::int64_t steps_in_all)
      : listener_(listener), clock_(clock), steps_in_all_(steps_in_all) {}

  void tell(Position at, std::int64_t epochs, std::int64_t steps_per_epoch,
            std::int64_t taken, std::optional<double> loss) {
    Nanoseconds now = wall_clock().now();
    if (!listener_.progress || now - told_ < std::chrono::milliseconds(100))
      return;
    told_ = now;
    if (now - window_start_ > std::chrono::seconds(2)) {
      last_window_ = clock_.total() - window_;
      window_ = clock_.total();
      window_start_ = now;
    }
    double elapsed = seconds(now - start_);
    Progress progress{
        .epoch = at.epoch,
        .epochs = epochs,
        .step = at.step + 1,
        .steps = steps_per_epoch,
        .elapsed_s = elapsed,
        .left_s = elapsed / static_cast<double>(taken) *
                  static_cast<double>(steps_in_all_ - taken),
        .loss = loss,
        .parts = last_window_.steps > 0 ? last_window_ : clock_.total(),
        .use = read_host_use()};
    listener_.progress(progress);
  }

 private:
  const TrainListener& listener_;
  StepClock& clock_;
  const std::int64_t steps_in_all_;
  const Nanoseconds start_ = wall_clock().now();
  Nanoseconds told_{0};
  Nanoseconds window_start_ = wall_clock().now();
  StepParts window_, last_window_;
};

void check_same_data(const SavedState& state, const Dataset& dataset) {
  if (state.fingerprint == dataset.fingerprint()) return;
  throw Error(
      ErrorKind::request,
      {.code = "resume.other_data",
       .what = "cannot resume the run",
       .where = "dataset.fingerprint",
       .why = "found " + dataset.fingerprint().substr(0, 12) +
              ", the run was made with " + state.fingerprint.substr(0, 12) +
              ": rows were added, removed or changed",
       .next = "start a new run, or bring the old rows back"});
}

/// What a device that takes no steps did is the host's time.
StepParts without_compute(StepParts parts) {
  parts.host += parts.compute;
  parts.compute = Nanoseconds(0);
  return parts;
}

void warn_if_starved(const RunNumbers& run, const TrainListener& listener) {
  double au = run.snapshot.parts.utilisation();
  if (!listener.note || !(au < 0.3)) return;
  Verdict verdict = diagnose(run.snapshot);
  if (verdict.limit == Limit::unknown) return;
  char share[16];
  std::snprintf(share, sizeof(share), "%.1f %%", 100 * au);
  std::string line = "warning: the accelerator works only " +
                     std::string(share) + " of the time: " + verdict.cause;
  if (!verdict.actions.empty()) {
    const Action& best = verdict.actions.front();
    char gain[32];
    std::snprintf(gain, sizeof(gain), "%.1f x the rate",
                  1 + best.predicted_gain);
    line += "; set " + best.knob + " to " + best.to.dump() +
            " (predicted: " + gain + ", costs " + best.cost + ")";
  }
  listener.note(line);
}

}  // namespace

Job job_of_run(const std::string& run_folder) {
  std::string path = run_folder + "/run.json";
  Json run;
  try {
    run = Json::parse(real_files().read(path), path);
  } catch (const Error& error) {
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
  const TrainListener& listener = options.listener;
  std::optional<SavedState> saved;
  if (!options.resume.empty()) saved = read_state(options.resume);

  std::unique_ptr<Device> device = open_device(job.device);
  RunFolder folder(real_files(), job.output,
                   run_json(job, *device, options.resume));
  run.folder = folder.path().string();

  DatasetOptions wanted = dataset_options(job);
  wanted.planned = [&](const TierPlan& plan) {
    if (listener.note)
      listener.note("where the rows will live:\n" + plan.text());
  };
  std::shared_ptr<const Dataset> dataset = Dataset::prepare(wanted, *device);
  write_quarantine(folder, *dataset);
  if (saved) check_same_data(*saved, *dataset);
  folder.write("statistics.json", dataset->fitted().json(job.fields));

  LoaderOptions loading = loader_options(job, Side::train);
  std::int64_t per_epoch = steps_per_epoch(order_of(loading, *dataset));
  std::int64_t in_all = job.training.epochs * per_epoch;
  if (job.training.max_steps)
    in_all = std::min(in_all, *job.training.max_steps);
  std::int64_t taken = saved ? saved->steps_taken : 0;
  if (saved) loading.start = saved->position;
  loading.batches = std::max<std::int64_t>(0, in_all - taken);

  std::unique_ptr<Stream> stream = device->make_stream();
  StepClock clock(device->clock());
  DeviceStepper stepper(*device);
  StepLog log(folder);
  Teller teller(listener, clock, in_all);
  Loader loader(dataset, loading, *device);
  bool stopped = false;
  while (!stopped) {
    clock.ask();
    std::optional<Batch> batch = loader.next();
    if (!batch) break;
    clock.got();
    clock.group(batch->at().epoch);
    clock.before_wait(*stream);
    batch->wait_on(*stream);
    clock.after_wait(*stream);
    stepper.step(*batch, *stream, taken);
    clock.after_step(*stream);
    if (run.steps == 0) run.first_step = wall_clock().now();
    ++taken;
    ++run.steps;
    run.samples += batch->rows();
    run.samples_by_epoch[batch->at().epoch] += batch->rows();
    log.add(batch->at(), batch->rows(), wall_clock().now() - run.started,
            stepper.loss());
    teller.tell(batch->at(), job.training.epochs, per_epoch, taken,
                stepper.loss());
    stopped = options.stop != nullptr && options.stop->load();
  }
  clock.finish();
  log.flush();

  run.snapshot.parts = clock.total();
  run.by_epoch = clock.by_group();
  if (!stepper.takes_time()) {
    run.snapshot.parts = without_compute(run.snapshot.parts);
    for (auto& [epoch, parts] : run.by_epoch) parts = without_compute(parts);
  }
  run.snapshot.samples = run.samples_timed();
  run.snapshot.stages = loader.stages();
  run.snapshot.wait_order = loader.wait_order();
  run.snapshot.limits = read_host_limits();
  run.snapshot.use = read_host_use();
  warn_if_starved(run, listener);
  folder.write("state.json", json_of({.position = loader.position(),
                                      .steps_taken = taken,
                                      .fingerprint = dataset->fingerprint()}));
  TrainResult result;
  result.report = report_json(run, job, *dataset, *device);
  result.interrupted = stopped && taken < in_all;
  folder.write("report.json", result.report);
  return result;
}

}  // namespace penstock
