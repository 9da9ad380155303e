#include "penstock/run/folds.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "penstock/report/report.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(std::string where, std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = "train.folds",
                                   .what = "cannot train the folds of the job",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

void check_options(const TrainOptions& options) {
  if (!options.output.empty())
    refuse("--output", "each fold has weights of its own",
           "leave out --output, and take the weights from RUN/folds/N; or "
           "train on all rows without train.folds");
  if (options.skip != 0)
    refuse("--skip", "the folds have a position each",
           "resume one of them: --resume RUN/folds/N");
}

/// What an earlier run of the folds has finished, in their order.
std::vector<Json> finished_in(const std::string& run) {
  std::vector<Json> outcomes;
  std::string why;
  if (const auto report =
          document_in(std::filesystem::path(run) / "report.json", why))
    for (const Json& one : list_in(*report, {"folds"})) outcomes.push_back(one);
  return outcomes;
}

/// The folder of a fold that an earlier run began and did not finish; empty if
/// no such fold exists.
std::string begun_in(const std::string& run, const std::string& fold) {
  if (run.empty()) return "";
  const std::filesystem::path path =
      std::filesystem::path(run) / "folds" / fold;
  std::error_code none;
  return std::filesystem::exists(path / "state.json", none) ? path.string()
                                                            : "";
}

}  // namespace

Job job_of_fold(const Job& job, std::int64_t fold) {
  Json document = job.document;
  const Json* split = document.find("split");
  if (split != nullptr && split->is_number())
    document["split"] = split_section(*split, "split");
  document["split"]["folds"] = *job.training.folds;
  document["split"]["fold"] = fold;
  document["train"]["folds"] = nullptr;
  return parse_job(document);
}

TrainResult train_folds(
    const Job& job, const TrainOptions& options,
    const std::function<TrainResult(const Job&, const TrainOptions&)>&
        train_one) {
  check_options(options);
  const std::int64_t folds = *job.training.folds;
  std::vector<Json> outcomes;
  if (!options.resume.empty()) outcomes = finished_in(options.resume);
  if (std::ssize(outcomes) >= folds) {
    if (options.listener.note)
      options.listener.note(options.resume + " is finished: all " +
                            std::to_string(folds) + " folds are trained");
    const std::string path = options.resume + "/report.json";
    return {.report = Json::parse(real_files().read(path), path)};
  }
  const std::shared_ptr<Device> device = open_device(job.device);
  RunFolder folder(real_files(), job.output.dir,
                   run_json(job, *device, options.resume));
  TrainResult result;
  result.report["version"] = kReportVersion;
  result.report["run"] = folder.path().string();
  result.report["settings"] = resolved_settings(job, *device);
  auto write_report = [&](bool all) {
    result.interrupted = !all;
    result.report["interrupted"] = !all;
    add_folds(outcomes, result.report);
    folder.write("report.json", result.report);
    folder.write_bytes("report.html", report_html(result.report),
                       Lasting::later);
  };
  for (std::int64_t fold = std::ssize(outcomes); fold < folds; ++fold) {
    if (options.listener.note)
      options.listener.note("fold " + std::to_string(fold + 1) + " of " +
                            std::to_string(folds));
    TrainOptions of_fold = options;
    of_fold.run_name = std::to_string(fold);
    of_fold.resume = begun_in(options.resume, of_fold.run_name);
    Job one = job_of_fold(job, fold);
    one.output.dir = folder.path() / "folds";
    TrainResult trained;
    try {
      trained = train_one(one, of_fold);
    } catch (...) {
      std::error_code none;
      if (!std::filesystem::exists(folder.path() / "folds", none))
        folder.discard();
      throw;
    }
    folder.become_latest();
    if (trained.interrupted) {
      write_report(false);
      return result;
    }
    outcomes.push_back(outcome_of_fold(trained.report, fold));
    write_report(fold + 1 == folds);
  }
  return result;
}

void refuse_folds_of_ranks() {
  refuse("train.folds", "this process is one of several ranks",
         "train the folds in one process, or run one job for each fold with "
         "split.folds and split.fold");
}

}  // namespace penstock
