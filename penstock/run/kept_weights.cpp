#include "penstock/run/kept_weights.h"

namespace penstock {
namespace {

Rank rank_of(const RankGroup* ranks) {
  return ranks == nullptr ? Rank{} : ranks->rank();
}

/// The name of the file that the weights are in.
std::string write_weights(OutputFolder& folder, Stepper& stepper) {
  const WeightsForm& form = stepper.facts().form;
  folder.write(form.file, weights_file(stepper.save()));
  for (const auto& [name, text] : form.beside) folder.write(name, text);
  return form.file;
}

}  // namespace

const Best* KeptWeights::best() const {
  const std::optional<SavedState>& newest = checkpoints.newest();
  if (!newest || !newest->best || newest->best->sha256.empty()) return nullptr;
  return &*newest->best;
}

void KeptWeights::write_last() const {
  if (!stepper.facts().has_model) return;
  if (best() != nullptr && !keeps_last(job, true)) return;
  folder.inside(kWeightsFolder)
      .write(kLastWeights, weights_file(stepper.save()));
}

void KeptWeights::put_back_best() const {
  if (!stepper.facts().has_model) return;
  const Best* kept = best();
  // After its last step the model has them.
  if (kept != nullptr && kept->step < checkpoints.newest()->steps_taken)
    stepper.restore(
        with_weights(stepper.save(),
                     (folder.path() / kWeightsFolder / kBestWeights).string()));
  if (!options.listener.note) return;
  options.listener.note("the run keeps the weights " +
                        (kept == nullptr
                             ? "of its last step"
                             : "of its best validation: " + text_of(*kept)));
}

bool KeptWeights::stopped() const {
  const bool here = options.stop != nullptr && options.stop->load();
  if (options.ranks == nullptr) return here;
  if (here) options.ranks->wish_stop();
  return options.ranks->vote({}).stop;
}

std::optional<Json> KeptWeights::evaluate_test() const try {
  if (!stepper.facts().has_model || session.rows().rows_on(Side::test) == 0)
    return Json();
  if (options.ranks != nullptr) stepper.join(options.ranks);
  const std::unique_ptr<Loader> rows =
      session.open_side(Side::test, {}, 0, rank_of(options.ranks));
  for (std::int64_t i = 0; i < rows->steps_per_epoch(); ++i) {
    if (stopped()) return std::nullopt;
    stepper.validate(session.shared(promised(rows->next(session.stream()))),
                     session.stream());
  }
  Json test = reported_measures(stepper.validated().metrics);
  if (options.listener.note)
    options.listener.note("test, on the weights that are kept: " +
                          measures_text(test, ""));
  return test;
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  return std::nullopt;
}

void KeptWeights::write_adapter() const {
  if (!stepper.facts().form.adapter) return;
  OutputFolder adapter = folder.inside("adapter");
  write_weights(adapter, stepper);
}

void KeptWeights::write_output(OutputFolder& output, bool all) const {
  const std::string place = output.path().string();
  std::string line = "nothing is in " + place + " yet: resume the run";
  if (all) {
    const std::string file = write_weights(output, stepper);
    if (const Json found = session.opened()->statistics(); found.is_object())
      output.write("statistics.json", text_of_statistics(found));
    line = "the weights are in " + place + "/" + file;
  }
  if (options.listener.note) options.listener.note(line);
}

std::optional<OutputFolder> output_of(const Job& job,
                                      const TrainOptions& options) {
  if (options.output.empty()) return std::nullopt;
  if (job.model.none())
    throw Error(ErrorKind::request,
                {.code = "output.no_model",
                 .what = "cannot leave the weights of the model",
                 .where = "--output",
                 .why = "the job has no model",
                 .next = "name a model in the job, or leave out --output"});
  return OutputFolder(real_files(), options.output, "--output");
}

}  // namespace penstock
