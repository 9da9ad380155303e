#include "penstock/run/opening.h"

#include "penstock/run/rank_facts.h"
#include "penstock/run/session.h"

namespace penstock {

std::shared_ptr<const Dataset> open_rows(const Job& job, Device& device,
                                         const OpenOptions& options,
                                         StopFlag stop) {
  if (options.rows) return options.rows(job, device, stop);
  TableDatasetOptions wanted = dataset_options(job);
  wanted.statistics = options.statistics;
  if (options.note) {
    wanted.scanning = [note = options.note](const std::string& limit) {
      note("the initial scan may hold " + limit);
    };
    wanted.planned = [note = options.note](const TierPlan& plan) {
      note("where the rows will live:\n" + plan.text());
    };
  }
  std::unique_ptr<Source> source =
      open_source(wanted.source, requests_of(wanted), {stop});
  return prepare_dataset(wanted, std::move(source), device);
}

std::unique_ptr<Session> open_loader(const Job& job,
                                     const OpenOptions& options) {
  std::unique_ptr<Session> loader;
  try {
    loader.reset(new Session(job, options));
  } catch (...) {
    bool stopped = options.stop && *options.stop;  // then it does not wait
    if (options.agree && !stopped)
      report_failure(options.agree, options.rank, std::current_exception());
    throw;
  }
  if (options.agree)
    compare_ranks(options.agree, options.rank, loader->rank_facts());
  else if (!options.rows && !options.agrees_later)
    check_named_rows(options.rank, job.source, *loader->rows_);
  return loader;
}

}  // namespace penstock
