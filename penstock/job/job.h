#pragma once

/// The job file: its settings, checked, and their schema.
///
///     Job job = load_job("job.json", {"loader.batch_size=512"});
///     LoaderOptions options = loader_options(job, Side::train);
///     std::printf("%lld\n", static_cast<long long>(options.batch_size));

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/dataset/dataset.h"
#include "penstock/device/device.h"
#include "penstock/job/document.h"
#include "penstock/job/manifest.h"
#include "penstock/job/mixed_sources.h"
#include "penstock/job/schema.h"
#include "penstock/job/sections.h"
#include "penstock/loader/loader.h"
#include "penstock/models/models.h"

namespace penstock {

/// A job file, checked. A value; the defaults are those of the schema.
struct Job {
  /// The settings with overrides applied and short forms written out.
  Json document;
  SourceSpec source;          ///< empty where there are several
  std::vector<Field> fields;  ///< of several sources those of the first
  Split split;
  std::vector<MixedSource> sources;  ///< that are mixed; none: there is one
  LoaderSection loading;
  DeviceSpec device;
  TrainSection training;
  ModelSpec model;
  OutputSection output;
};

/// Throws Error(request) with the JSON path of what is wrong.
Job parse_job(const Json& document);

/// A job over rows of the caller: as above, without `source` and `fields`.
Job parse_job_of_rows(const Json& document);

/// A job over a source with these columns that the caller opens: as
/// parse_job(), but of `source`, which may be missing, only `on_bad` and
/// `fingerprint`.
Job parse_job_of_source(const Json& document, const Schema& schema);

/// Throws Error(request) for the first setting that needs held-out rows;
/// `why_none`: why no row is held out.
void check_held_out(const Job& job, const std::string& why_none);

/// Reads a job file as read_job() does, and checks it.
Job load_job(const std::string& path, const std::vector<std::string>& sets);

/// Processors that the threads of a job's loader may use.
double loader_cpus(const Job& job);
/// The options of the loader and of the data set for a job.
LoaderOptions loader_options(const Job& job, Side side);
/// Those of the held-out rows that a model is validated on, and of rows that it
/// makes predictions of: the last batch is filled up with padding, so that each
/// has the same shape. A model of the user's own gets a short batch instead,
/// and so do rows that have a tensor named as the weights.
LoaderOptions validation_options(const Job& job);
/// What decides the tensors of a batch, by the fields' names; where there are
/// operations theirs too, as "loader.operations".
Json recipes_of(const Job& job);
/// How many batches a job takes in all: its epochs, or `train.max_steps` where
/// that is less; at most INT64_MAX.
std::int64_t steps_in_all(const Job& job, const Order& order);
/// `memory` is that of the device which the batches go to. Which rows there
/// are, and in which store, does not depend on it.
TableDatasetOptions dataset_options(const Job& job, MemoryKind memory);
/// Those of each source that is mixed. Their batches are made on the host.
std::vector<MixedSourceOptions> mixed_options(const Job& job);

/// The settings with every default filled in, for the report.
Json resolved_settings(const Job& job, const Device& device);

}  // namespace penstock
