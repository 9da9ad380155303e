#pragma once

#include <memory>
#include <vector>

#include "penstock/dataset/mixed/mixed_dataset.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// One source of a mixture.
struct MixedSourceOptions {
  TableDatasetOptions rows;
  double weight = 1;
};

/// Notes in the options what each source's fields are fitted with, which is
/// part of the name of its store.
void note_what_fits(std::vector<MixedSourceOptions>& options,
                    const std::vector<BoundSource>& sources);

/// What batches are made of, from sources that were opened with
/// `requests_of(options[i].rows)`; each is prepared as prepare_dataset() would.
///
/// A field that has the same settings in several sources is fitted over the
/// train rows of all of these together, one source after the other, so that it
/// means the same wherever a row came from. A field with settings of its own is
/// fitted over its own source. Budgets of `cache` are those of all sources
/// together.
///
/// Throws what prepare_dataset() and MixedDataset throw, and Error(request),
/// codes mixing.fields, for sources whose fields have other names,
/// mixing.classes, for a category of which one source has other classes than
/// another, and mixing.cache, for rows that are to be kept on a device with
/// memory of its own.
std::shared_ptr<const Dataset> prepare_mixed(
    std::vector<MixedSourceOptions> options,
    std::vector<std::unique_ptr<Source>> sources, Exhausted exhausted,
    Device& device);

}  // namespace penstock
