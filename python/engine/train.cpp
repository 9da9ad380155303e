#include "python/engine/train.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "penstock/monitor/monitor.h"
#include "penstock/run/run.h"
#include "python/engine/gil.h"
#include "python/engine/messages.h"
#include "python/engine/own_stepper.h"
#include "python/engine/own_trainer.h"
#include "python/engine/signals_ask.h"

namespace penstock::python {
namespace {

/// What penstock.training asks for, beside the job.
struct RunRequest {
  std::string job;  ///< the document
  nb::object maker, listener;
  std::string resume;
  std::int64_t skip = 0;
  std::string output;
  std::vector<int> ending, saving;  ///< signals
  bool trace = false;
};

/// Work of the run is queued where torch queues its own.
void follow_torch(Session& session, const nb::object& maker) {
  if (session.device().memory_kind() != MemoryKind::cuda) return;
  auto stream =
      nb::cast<std::uintptr_t>(maker.attr("stream")(session.device().number()));
  session.use_stream(reinterpret_cast<void*>(stream));
}

OwnTrainer trainer_of(const nb::object& maker) {
  OwnTrainer made = trainer_of_torch(maker);
  made.make_stepper =
      [&maker](const Job& job, const std::shared_ptr<Session>& session,
               std::int64_t steps, const std::filesystem::path& folder) {
        Json known = facts_of(job, *session, steps);
        known["folder"] = folder.string();
        const std::string facts = known.dump();
        return in_python([&]() -> std::unique_ptr<Stepper> {
          follow_torch(*session, maker);
          return std::make_unique<OwnStepper>(session,
                                              maker.attr("stepper")(facts));
        });
      };
  return made;
}

TrainListener listener_of(const nb::object& listener) {
  return {.note =
              [&listener](const std::string& line) {
                in_python([&] { listener.attr("note")(line); });
              },
          .progress =
              [&listener](const Progress& progress) {
                in_python([&] {
                  listener.attr("progress")(progress_line(
                      progress, nb::cast<int>(listener.attr("columns")())));
                });
              }};
}

/// (report, its rank, the signal that stopped it or 0).
std::tuple<std::string, int, int> run(const RunRequest& request) {
  const Job job = parse_job(Json::parse(request.job, "the job"));
  TrainOptions options{.listener = listener_of(request.listener),
                       .resume = request.resume,
                       .skip = request.skip,
                       .output = request.output,
                       .trace = request.trace,
                       .own = trainer_of(request.maker)};
  if (job.model.kind != "own") options.own.reset();
  SignalsAsk signals(request.ending, request.saving);
  options.stop = &SignalsAsk::stop();
  options.save = &SignalsAsk::save();
  TrainResult result;
  {
    GilRelease meanwhile;
    result = train(job, options);
  }
  // Another rank got the signal: this one ends as if it had been SIGTERM.
  const bool elsewhere = result.interrupted && SignalsAsk::first() == 0;
  return {result.report.dump(), result.rank,
          elsewhere ? SIGTERM : SignalsAsk::first()};
}

std::tuple<std::string, int, int> run_with_messages(
    std::string job, nb::object maker, nb::object listener, std::string resume,
    std::int64_t skip, std::string output, std::vector<int> ending,
    std::vector<int> saving, bool trace) {
  const RunRequest request{
      std::move(job), std::move(maker),  std::move(listener), std::move(resume),
      skip,           std::move(output), std::move(ending),   std::move(saving),
      trace};
  try {
    auto result = run(request);
    write_messages();
    return result;
  } catch (...) {
    write_messages();
    throw;
  }
}

/// The settings of a run: of `path`, of a run that is resumed, or the document
/// itself; with the keys of a manifest, where one is named, which the program
/// has told about; with a user's own model where `model` names one.
std::string run_document(const std::string& path, const std::string& document,
                         const std::string& resume,
                         const std::vector<std::string>& sets,
                         const std::string& model,
                         const std::string& manifest) {
  Json made{Json::Object{}};
  if (!resume.empty()) {
    made = document_of_run(resume, sets);
  } else {
    if (!path.empty())
      made = read_job(path, {});
    else if (!document.empty())
      made = Json::parse(document, "the job");
    if (!manifest.empty()) apply_manifest(read_manifest(manifest), made);
    for (const std::string& set : sets) apply_setting(made, set);
  }
  if (!model.empty()) use_own_model(made, model);
  parse_job(made);
  return made.dump();
}

/// What became of a key of a manifest: (key, value as JSON, whether it is
/// understood, settings, why).
using MappedKey = std::tuple<std::string, std::string, bool,
                             std::vector<std::string>, std::string>;

/// A job file with the keys of `manifest`, a JSON object, as a document that
/// was checked; and what became of each key.
std::tuple<std::string, std::vector<MappedKey>> manifest_document(
    const std::string& path, const std::string& manifest,
    const std::vector<std::string>& sets) {
  Json made = read_job(path, sets);
  std::vector<MappedKey> mapped;
  for (ManifestKey& key :
       apply_manifest(Json::parse(manifest, "the manifest"), made))
    mapped.emplace_back(std::move(key.key), key.value.dump(), key.understood,
                        std::move(key.settings), std::move(key.why));
  parse_job(made);
  return {made.dump(), std::move(mapped)};
}

/// What a step of the job's model takes: as JSON, and as a line for people.
std::tuple<std::string, std::string> estimated(const std::string& document,
                                               nb::object maker,
                                               nb::object listener) {
  const Job job = parse_job(Json::parse(document, "the job"));
  TrainOptions options{.listener = listener_of(listener),
                       .own = trainer_of(maker)};
  if (job.model.kind != "own") options.own.reset();
  MemoryEstimate estimate;
  {
    GilRelease meanwhile;
    estimate = estimate_job(job, options);
  }
  write_messages();
  return {json_of(estimate).dump(), memory_line(estimate)};
}

}  // namespace

void bind_train(nb::module_& module) {
  module.def("run_document", &run_document, nb::arg("path"),
             nb::arg("document"), nb::arg("resume"), nb::arg("sets"),
             nb::arg("model"), nb::arg("manifest") = "");
  module.def("manifest_document", &manifest_document, nb::arg("path"),
             nb::arg("manifest"), nb::arg("sets"));
  module.def("manifest_keys", &manifest_keys);
  module.def("estimate", &estimated, nb::arg("job"), nb::arg("maker"),
             nb::arg("listener"));
  module.def(
      "summary",
      [](const std::string& report) {
        return summary_of(Json::parse(report, "the report"));
      },
      nb::arg("report"));
  module.def("train", &run_with_messages, nb::arg("job"), nb::arg("maker"),
             nb::arg("listener"), nb::arg("resume"), nb::arg("skip"),
             nb::arg("output"), nb::arg("ending"), nb::arg("saving"),
             nb::arg("trace") = false);
}

}  // namespace penstock::python
