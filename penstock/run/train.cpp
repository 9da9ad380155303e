#include "penstock/run/train.h"

#include <cstdio>
#include <utility>

#include "penstock/report/report.h"
#include "penstock/run/carried_files.h"
#include "penstock/run/folds.h"
#include "penstock/run/job_memory.h"
#include "penstock/run/kept_weights.h"
#include "penstock/run/loop.h"
#include "penstock/run/rank_log.h"
#include "penstock/run/ranks_of_run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

/// Says what is in force of what the job asks of its model; for `run.json`.
Json told(const std::vector<SwitchInForce>& switches,
          const TrainListener& listener) {
  Json effective{Json::Object{}};
  for (const SwitchInForce& one : switches) {
    Json& entry = effective[one.name];
    entry["asked"] = one.asked;
    entry["got"] = one.got;
    if (!one.why.empty()) entry["why"] = one.why;
    auto shown = [](const Json& value) {
      return value.is_string() ? value.string() : value.dump();
    };
    std::string line = one.name + ": " + shown(one.got);
    if (!one.why.empty())
      line += " (asked: " + shown(one.asked) + "): " + one.why;
    if (listener.note) listener.note(line);
  }
  return effective;
}

/// The numbers of a finished loop, for the report and the verdict.
RunNumbers numbers_of(Session& session, const Stepper& stepper,
                      const std::string& folder) {
  RunNumbers run = session.numbers();
  run.folder = folder;
  run.row = stepper.facts().row_work;
  run.model = stepper.facts().about;
  if (const StepMemory* memory = stepper.memory()) {
    run.oom = memory->events();
    run.model_peak = memory->peak();
  }
  if (!stepper.facts().takes_time) run.leave_out_compute();
  return run;
}

/// Copies what predictions need beside the job, and lists it in `run.json`.
void carry(const Job& job, const std::filesystem::path& folder, Json& about) {
  const Json carried = carry_files(job, folder);
  if (!carried.array().empty()) about["carried"] = carried;
}

/// Notes the types of the columns that the fields read, for predictions.
void note_columns(const Dataset& rows, Json& about) {
  for (const FittedFields* fitted : rows.facts().all_fitted())
    for (const ColumnInfo& column : fitted->columns)
      if (Json& type = about["columns"][column.name]; type.is_null())
        type = column.declared;
}

/// The job beside its weights, so that the folder makes predictions by itself.
void leave_job(OutputFolder& folder, Json about, const Job& job) {
  carry(job, folder.path(), about);
  folder.write("run.json", about.dump(2) + "\n");
}

const char* place_of(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "on the device";
    case Tier::pinned:
      return "in pinned memory";
    case Tier::ram:
      return "in host memory";
    case Tier::disk:
      return "on disk";
    case Tier::none:
      break;
  }
  return "read when needed";
}

/// "3224 train + 806 val rows on the device, 0.3 GiB, ready after 2.1 s".
std::string opened_line(const DatasetFacts& facts, Nanoseconds took) {
  const TierPlan& plan = facts.plan;
  std::size_t bytes = 0;
  std::string where;
  for (const TierPlan::Line& line : plan.lines) {
    if (!line.chosen) continue;
    bytes += line.rows_bytes;
    if (!where.empty()) where += ", ";
    if (plan.places.size() > 1) where += std::to_string(line.rows) + " ";
    where += place_of(line.tier);
  }
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.1f s",
                static_cast<double>(took.count()) / 1e9);
  const std::string train =
      facts.endless ? "an endless stream of train rows + "
                    : std::to_string(facts.on_side[0]) + " train + ";
  const std::string test =
      facts.on_side[2] > 0 ? " + " + std::to_string(facts.on_side[2]) + " test"
                           : "";
  return train + std::to_string(facts.on_side[1]) + " val" + test + " rows " +
         where + ", " + shown_bytes(bytes) + ", ready after " + seconds;
}

/// What ends the reading of rows. One of several ranks ends with all others, in
/// the vote of a step: it reads on until then.
std::shared_ptr<const std::atomic<bool>> stop_of(const TrainOptions& options) {
  if (options.ranks != nullptr) return {};
  return {std::shared_ptr<void>(), options.stop};  // which outlives the session
}

Agree agree_of(const TrainOptions& options) {
  if (options.ranks == nullptr) return {};
  return [ranks = options.ranks](const std::string& mine) {
    return ranks->gather(mine);
  };
}

/// The folder of the run, or what one of several ranks writes inside of it.
RunFolder folder_of(const Job& job, const TrainOptions& options,
                    const Json& about) {
  RankGroup* ranks = options.ranks;
  if (ranks == nullptr)
    return {real_files(), job.output.dir, about, options.run_name};
  if (ranks->first()) {
    RunFolder folder(real_files(), job.output.dir, about, options.run_name);
    ranks->gather(folder.path().string());
    return folder;
  }
  return {real_files(), ranks->gather("").front(), ranks->rank().rank};
}

bool writes(const TrainOptions& options) {
  return writes_for_all(options.ranks);
}

/// Opens the rows at the step that `from` says; null where it was stopped.
std::unique_ptr<Session> open_session(const Job& job,
                                      const TrainOptions& options,
                                      const Resumption& from,
                                      std::shared_ptr<Device> device) try {
  const Nanoseconds began = wall_clock().now();
  std::unique_ptr<Session> session = open_loader(
      job, {.rank = options.ranks != nullptr ? options.ranks->rank() : Rank{},
            .timed = true,
            .stop = stop_of(options),
            .device = std::move(device),
            .statistics = from.statistics,
            .state = from.state,
            .note = options.listener.note,
            .agree = agree_of(options),
            .epochs_listed = SIZE_MAX});
  log(LogLevel::info, "prepared " + std::to_string(session->rows().rows()) +
                          " rows, fingerprint " +
                          session->rows().fingerprint());
  if (options.listener.note)
    options.listener.note(
        opened_line(session->rows().facts(), wall_clock().now() - began));
  if (std::string line = order_line(session->order());
      options.listener.note && !line.empty())
    options.listener.note(line);
  if (std::string line = chunk_line(session->order(), session->rows().facts());
      options.listener.note && !line.empty())
    options.listener.note(line);
  return session;
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  return nullptr;
}

/// The folder itself, where `latest` or another link leads to it.
std::string without_links(const std::string& run_folder) {
  std::filesystem::path path = run_folder;
  if (!path.has_filename()) path = path.parent_path();  // "runs/latest/"
  std::error_code none;
  while (std::filesystem::is_symlink(path, none))
    path = path.parent_path() / std::filesystem::read_symlink(path, none);
  return path;
}

/// "skipped 3 steps: continues at epoch 2, step 0".
void note_skip(const TrainOptions& options, Position at) {
  if (!options.listener.note) return;
  const bool back = options.skip < 0;
  std::string steps = std::to_string(options.skip).substr(back ? 1 : 0);
  options.listener.note(
      (back ? "went back " : "skipped ") + steps +
      (steps == "1" ? " step" : " steps") + ": the run continues at epoch " +
      std::to_string(at.epoch) + ", step " + std::to_string(at.step));
}

/// From here on the run can be resumed, however it ends.
void save_beginning(RunFolder& folder, Checkpoints& checkpoints,
                    Resumption& from) {
  try {
    if (from.statistics)
      checkpoints.save_statistics(text_of_statistics(*from.statistics),
                                  from.state);
    if (from.best) checkpoints.save_best(*from.best, from.state);
    checkpoints.save(from.state, from.model ? &*from.model : nullptr);
    from.best.reset();
    folder.check_latest();
  } catch (const Error&) {
    folder.discard();
    throw;
  }
}

/// The report of a run that has ended, where nothing is left to do for it.
std::optional<Json> report_of_ended(const std::string& run,
                                    const SavedState& state, const Job& job) {
  if (!has_ended(state, job)) return std::nullopt;
  const std::string path = run + "/report.json";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return std::nullopt;
  Json report = Json::parse(real_files().read(path), path);
  const bool tested = number_in(report, {"dataset", "test"}).value_or(0) == 0 ||
                      (report.find("test") && report.find("test")->is_object());
  if (!tested) return std::nullopt;
  return report;
}

void note_ended(const TrainOptions& options, const std::string& run,
                const SavedState& state, const Job& job) {
  if (!options.listener.note) return;
  const std::string steps = std::to_string(state.steps_taken);
  std::string line = run + " is finished: ";
  if (out_of_patience(state, job))
    line += "it ended after " + steps +
            " steps, out of patience: " + patience_text(*state.best) +
            ". To continue, resume it with a higher train.patience, or with "
            "--set train.patience=null";
  else
    line +=
        "the run took all " + steps +
        " steps. To continue, resume it with a higher train." +
        (job.training.max_steps == state.steps_taken ? "max_steps" : "epochs");
  options.listener.note(line);
}

/// A run from its folder on, before its rows are open.
struct Begun {
  const Job& job;
  const TrainOptions& options;
  Nanoseconds started;
  std::string resumed;  // the run that it continues from; or empty
  Resumption from;
  std::shared_ptr<Device> device;
  std::optional<OutputFolder> weights;
  Json about;  // run.json
  RunFolder folder;
  Checkpoints checkpoints{folder, keeps_best(job, true)};

  bool skips() const { return options.skip != 0; }
  /// That of rank 0, inside of which the others have theirs: RUN/ranks/N.
  std::filesystem::path shared_folder() const {
    return writes(options) ? folder.path()
                           : folder.path().parent_path().parent_path();
  }
  TrainResult finish(const RunNumbers& run, const Dataset* rows, bool all) {
    TrainResult result{.report = report_json(run, job, rows, *device),
                       .interrupted = !all};
    result.report["interrupted"] = result.interrupted;
    if (options.ranks != nullptr)
      result.report["ranks"] = options.ranks->report_json();
    folder.write("report.json", result.report);
    folder.write_bytes("report.html", report_html(result.report),
                       Lasting::later);
    return result;
  }
};

/// After an epoch the rows that it had are in their store, for the next run.
void fill_store(const Session& session, const TrainOptions& options) {
  const auto later = session.opened()->facts().later;
  if (later == nullptr || later->rows() != nullptr) return;
  if (options.listener.note)
    options.listener.note("waiting for the store of the rows to be complete");
  later->wait(options.stop);
}

/// Whether it took all its steps.
bool run_loop(const Loop::Parts& parts, std::int64_t steps) {
  return Loop(parts, steps).run();
}

/// What is left when the steps are over: the weights, what they give on the
/// side test, and the report. `all`: the run took all its steps, of so many.
TrainResult leave(Begun& of, Session& session, Stepper& stepper, bool all,
                  std::int64_t steps) {
  const TrainOptions& options = of.options;
  const SavedState& state = of.from.state;
  if (all && state.position.epoch > 0) fill_store(session, options);
  if (all && out_of_patience(state, of.job) && options.listener.note)
    options.listener.note("out of patience: the run ends after " +
                          std::to_string(state.steps_taken) + " of " +
                          std::to_string(steps) + " steps; " +
                          patience_text(*state.best));
  stepper.join(nullptr);
  // A module of the user's own is whole on rank 0 alone, which evaluates it.
  const bool own = of.job.model.kind == "own";
  if (own && !writes(options)) {
    options.ranks->gather("");  // rank 0 has written what the run leaves
    return of.finish(numbers_of(session, stepper, of.folder.path().string()),
                     &session.rows(), all);
  }
  TrainOptions of_kept = options;
  if (own) of_kept.ranks = nullptr;
  const KeptWeights kept{.job = of.job,
                         .options = of_kept,
                         .folder = of.folder,
                         .checkpoints = of.checkpoints,
                         .session = session,
                         .stepper = stepper};
  if (writes(options)) {
    kept.write_last();
    if (all) kept.put_back_best();
    kept.write_adapter();
    if (of.weights && all) leave_job(*of.weights, of.about, of.job);
    if (of.weights) kept.write_output(*of.weights, all);
  }
  std::optional<Json> test;
  if (all) test = kept.evaluate_test();
  RunNumbers run = numbers_of(session, stepper, of.folder.path().string());
  run.best = state.best;
  run.test = test.value_or(Json());
  warn_if_starved(run.snapshot, options.listener);
  if (options.ranks != nullptr) options.ranks->gather("");  // all are done
  // Without its test, a run that resumes this one evaluates it.
  return of.finish(run, &session.rows(), all && test);
}

/// The steps that a job's rows and model have, from where `of.from` says.
TrainResult take_steps(Begun& of, const std::shared_ptr<Session>& session) {
  const TrainOptions& options = of.options;
  SavedState& state = of.from.state;
  session->counted().started = of.started;
  Quarantine quarantine(of.folder);
  quarantine.add(*session->opened());
  const auto statistics =
      note_rows(state, of.job, session->rows(), session->order());
  if (statistics && writes(options))
    of.checkpoints.save_statistics(*statistics, state);

  if (session->rows().rows_on(Side::val) == 0)
    check_held_out(of.job, "none of the rows is on the side 'val'");
  check_metric_of_rows(of.job, session->rows());
  std::unique_ptr<Stepper> stepper =
      make_stepper(of.job, options, session, of.shared_folder());
  if (of.from.model)
    stepper->restore(*of.from.model);
  else if (!of.job.model.path.empty() && !reads_path(of.job.model))
    stepper->restore(with_weights(stepper->save(), of.job.model.path));
  if (options.ranks != nullptr) stepper->join(options.ranks);
  if (writes(options)) {
    carry(of.job, of.folder.path(), of.about);
    note_columns(session->rows(), of.about);
  }
  const Json effective = told(stepper->facts().in_force, options.listener);
  if (Json& written = of.about["effective"];
      writes(options) && written != effective) {
    written = effective;
    of.folder.write("run.json", of.about, Lasting::with_next);
  }
  const std::int64_t steps = steps_in_all(of.job, session->order());
  const std::string warmup = warmup_line(of.job, steps);
  if (options.listener.note && !warmup.empty()) options.listener.note(warmup);
  fit_memory(of.job, *stepper, *session, options.listener.note);
  check_room(*stepper, of.folder.path(), of.job, options.listener.note);
  if (of.skips() && writes(options)) {
    save_beginning(of.folder, of.checkpoints, of.from);
    note_skip(options, state.position);
  }
  const bool all = run_loop({.job = of.job,
                             .options = options,
                             .session = *session,
                             .folder = of.folder,
                             .stepper = *stepper,
                             .checkpoints = of.checkpoints,
                             .quarantine = quarantine,
                             .state = state},
                            steps);
  return leave(of, *session, *stepper, all, steps);
}

/// From the folder on to the report.
TrainResult run_from_folder(Begun& run) {
  const TrainOptions& options = run.options;
  if (!run.skips() && writes(options))
    save_beginning(run.folder, run.checkpoints, run.from);

  std::shared_ptr<Session> session =
      open_session(run.job, options, run.from, run.device);
  // A stepper in Python may leave batches behind, which hold the session.
  struct Ends {
    Session* session;
    ~Ends() {
      if (session != nullptr) session->close();
    }
  } ends{session.get()};
  if (session != nullptr) return take_steps(run, session);
  if (run.skips() && options.listener.note)
    options.listener.note("no steps were skipped: resume " + run.resumed +
                          " again with --skip " + std::to_string(options.skip));
  return run.finish({.folder = run.folder.path().string(),
                     .started = run.started,
                     .read = wall_clock().now()},
                    nullptr, false);
}

}  // namespace

Job job_of_run(const std::string& run_folder) {
  std::string path = run_folder + "/run.json";
  Json run;
  try {
    run = Json::parse(real_files().read(path), path);
  } catch (const Error& error) {
    const ErrorParts& parts = error.parts();
    if (parts.code == "file.current_folder") throw;
    const std::string why =
        parts.why +
        (parts.code == "json.syntax" ? " (" + parts.where + ")" : "");
    throw Error(ErrorKind::request,
                {.code = "resume.no_run",
                 .what = "cannot resume the run",
                 .where = path,
                 .why = why,
                 .next = "name the folder of a run, such as runs/latest; if "
                         "run.json is damaged, restore the file"});
  }
  const Json* job = run.is_object() ? run.find("job") : nullptr;
  if (job == nullptr)
    throw Error(ErrorKind::request,
                {.code = "resume.no_run",
                 .what = "cannot resume the run",
                 .where = path,
                 .why = "the file has no key \"job\"",
                 .next = "name the folder of a run, such as runs/latest"});
  return parse_job(*job);
}

Json document_of_run(const std::string& run_folder,
                     const std::vector<std::string>& sets) {
  Json document = job_of_run(run_folder).document;
  for (const std::string& set : sets) apply_setting(document, set);
  return document;
}

DatasetFacts plan_rows(const Job& job,
                       const std::function<void(const std::string& line)>& note,
                       StopFlag stop) {
  // Python would open that of a user's own module.
  const std::shared_ptr<Device> device = job.model.kind == "own"
                                             ? open_device(job.device)
                                             : device_of_run(job, {});
  check_can_write(job.output.dir);
  const Job of_rows = job.training.folds ? job_of_fold(job, 0) : job;
  const auto rows = planned_rows(of_rows, *device, note, stop);
  if (rows->rows_on(Side::val) == 0)
    check_held_out(job, "none of the rows is on the side 'val'");
  check_metric_of_rows(job, *rows);
  check_model(job, *rows, *device, [&](const std::string& line) {
    if (note) note(line);
  });
  DatasetFacts facts = rows->facts();
  facts.parts.clear();  // they must not outlive the device
  return facts;
}

namespace {

/// A run of this process, by itself or with `options.ranks`, which have `log`.
TrainResult train_here(const Job& given, const TrainOptions& options,
                       RankLog* log_of_rank = nullptr) {
  const Job job =
      with_share_of_processors(with_batch_size(given, options), options.ranks);
  const Nanoseconds started = wall_clock().now();
  Resumption from;
  const std::string resumed = without_links(run_to_resume(job, options));
  if (!resumed.empty()) {
    if (writes(options)) sweep_checkpoints(resumed);
    from = read_resumption(resumed);
  }
  if (options.skip != 0) skip_steps(from.state, options.skip, job);
  if (const std::string line = forget_other_best(job, from.state);
      !line.empty() && options.listener.note)
    options.listener.note(line);
  if (!from.state.best || !keeps_best(job, true)) from.best.reset();
  if (!from.warning.empty()) log(LogLevel::warning, from.warning);
  check_same_fields(from.state, job);
  if (!resumed.empty() && options.output.empty())
    if (auto report = report_of_ended(resumed, from.state, job)) {
      note_ended(options, resumed, from.state, job);
      return {.report = std::move(*report)};
    }

  std::shared_ptr<Device> device = device_of_run(job, options);
  check_devices(*device, options.ranks);
  std::optional<OutputFolder> weights =
      writes(options) ? output_of(job, options) : std::nullopt;
  const Json about = run_json(job, *device, resumed, options.skip);
  Begun run{.job = job,
            .options = options,
            .started = started,
            .resumed = resumed,
            .from = std::move(from),
            .device = device,
            .weights = std::move(weights),
            .about = about,
            .folder = folder_of(job, options, about)};
  if (log_of_rank != nullptr)
    log_of_rank->open(run_of(run.folder, options.ranks));
  log(LogLevel::info, "run folder " + run.folder.path().string());
  auto done = [&] {
    const SavedState& state = run.from.state;
    return std::pair(state.steps_taken, state.to_validate);
  };
  const auto before = done();
  try {
    return run_from_folder(run);
  } catch (...) {
    if (done() == before) run.folder.discard();
    throw;
  }
}

}  // namespace

TrainResult train(const Job& job, const TrainOptions& options) {
  if (job.training.folds) {
    if (rank_place()) refuse_folds_of_ranks();
    TrainOptions named = options;
    named.resume = run_to_resume(job, options);
    named.resume_newest = false;
    return train_folds(job, named, [](const Job& one, const TrainOptions& of) {
      return train_here(one, of);
    });
  }
  const std::unique_ptr<RankGroup> ranks = join_ranks(job, options.own);
  if (ranks == nullptr) return train_here(job, options);
  RankLog log_of_rank(ranks->rank().rank);
  TrainOptions of_rank = options;
  of_rank.ranks = ranks.get();
  of_rank.listener = log_of_rank.logged(options.listener);
  return as_one_of(*ranks, [&] {
    try {
      TrainResult result = train_here(job, of_rank, &log_of_rank);
      result.rank = ranks->rank().rank;
      return result;
    } catch (...) {
      log_of_rank.add_failure();
      throw;
    }
  });
}

}  // namespace penstock
