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
#include "penstock/job/manifest.h"
#include "penstock/job/model.h"
#include "penstock/loader/loader.h"

namespace penstock {

/// A job file, checked. A value; the defaults are those of the schema.
struct Job {
  /// The `loader` section.
  struct Loading {
    LoaderOptions options;       ///< of both sides: see loader_options()
    std::optional<int> workers;  ///< missing: as many as `cpus`
    /// Processors that the threads of the loader may use; missing: those that
    /// we may use.
    std::optional<int> cpus;
    bool tune = true;          ///< what the job leaves open, while it runs
    std::optional<Tail> tail;  ///< missing: drop for train, exact for val
    std::optional<std::int64_t> val_batch_size;  ///< missing: batch_size
    std::string cache = "auto";
    Preparing preparing = Preparing::automatic;
    Drawing drawing;  ///< "weights" or "balance"
    /// Of several sources; missing: "stop".
    std::optional<Exhausted> exhausted;
    double limit_share = 1;       ///< "limit": of each side...
    std::int64_t limit_rows = 0;  ///< ...or rows; 0: all
    TierBudgets budgets;          ///< of `auto`
    std::string cache_dir;  ///< of the stores of `disk`; empty: the user's
  };
  /// The `train` section but for what only a model needs.
  struct Training {
    std::int64_t epochs = 1;
    std::optional<std::int64_t> max_steps;
    /// Missing: a model is saved at the end of every epoch.
    std::optional<std::int64_t> checkpoint_every_steps;
    bool profile = false;  ///< a trace of some steps, and times of the stages
  };

  /// One entry of `sources`.
  struct MixedSource {
    SourceSpec source;
    std::vector<Field> fields;  ///< its own, or the job's
    Split split;                ///< the same
    double weight = 1;
  };

  /// The `output` section.
  struct Output {
    std::string dir = "runs";
    bool tensorboard = false, csv = false, prometheus = false;
  };

  Json document;              ///< the settings as given, overrides included
  SourceSpec source;          ///< empty where there are several
  std::vector<Field> fields;  ///< of several sources those of the first
  Split split;
  std::vector<MixedSource> sources;  ///< that are mixed; none: there is one
  Loading loading;
  DeviceSpec device;
  Training training;
  ModelSpec model;
  Output output;
};

/// Throws Error(request) with the JSON path of what is wrong.
Job parse_job(const Json& document);

/// A job over rows of one's own: as above, without `source` and `fields`.
Job parse_job_of_rows(const Json& document);

/// A job over a source that the caller opens: as parse_job(), but of `source`,
/// which may be missing, only `on_bad` and `fingerprint`.
Job parse_job_of_source(const Json& document);

/// Reads a job file, not yet checked, and applies `sets`, each
/// "section.key=value" (a value that parses as JSON is JSON, else text;
/// "device.key" makes an object of a device that was given by its name).
Json read_job(const std::string& path, const std::vector<std::string>& sets);
/// The same, checked.
Job load_job(const std::string& path, const std::vector<std::string>& sets);

/// The settings as they may be stored and shown.
Json without_secrets(Json document);

void apply_setting(Json& document, const std::string& set);

/// Makes a job's model one in Python, "FILE.py:NAME": what its section says of
/// such a model stays, and of another kind its target.
void use_own_model(Json& document, const std::string& named);

/// The JSON Schema (draft 2020-12) of the job file.
std::string job_schema();

/// Processors that the threads of a job's loader may use.
double loader_cpus(const Job& job);
/// The options of the loader and of the data set for a job.
LoaderOptions loader_options(const Job& job, Side side);
/// What decides the tensors of a batch, by the fields' names; where there are
/// operations theirs too, as "loader.operations".
Json recipes_of(const Job& job);
/// How many batches a job takes in all: its epochs, or `train.max_steps` where
/// that is less; at most INT64_MAX.
std::int64_t steps_in_all(const Job& job, const Order& order);
TableDatasetOptions dataset_options(const Job& job);
/// Those of each source that is mixed.
std::vector<MixedSourceOptions> mixed_options(const Job& job);

/// The settings with every default filled in, for the report.
Json resolved_settings(const Job& job, const Device& device);

}  // namespace penstock
