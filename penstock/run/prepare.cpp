#include "penstock/run/prepare.h"

namespace penstock {

std::shared_ptr<const TableDataset> prepare_rows(
    const Job& job, Device& device, const PrepareOptions& options) {
  TableDatasetOptions wanted = dataset_options(job);
  wanted.statistics = options.statistics;
  wanted.scanning = options.scanning;
  wanted.planned = options.planned;
  return TableDataset::prepare(
      wanted, open_source(wanted.source, requests_of(wanted), {options.stop}),
      device);
}

}  // namespace penstock
