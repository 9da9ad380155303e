#include "penstock/run/opening.h"

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
      note("where the rows will be stored:\n" + plan.text());
    };
  }
  std::unique_ptr<Source> source =
      open_source(wanted.source, requests_of(wanted), {stop});
  return prepare_dataset(wanted, std::move(source), device);
}

}  // namespace penstock
