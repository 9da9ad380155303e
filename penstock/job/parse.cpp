#include "penstock/job/job.h"
#include "penstock/job/short_forms.h"

namespace penstock {
namespace {

/// An example of the section, of the first kind there is.
std::string source_example() {
  const SourceKind& kind = source_kinds()[0];
  return "\"source\": {\"kind\": \"" + kind.name + "\", \"" + kind.place_key() +
         "\": ..., \"table\": ...}";
}

/// Where a job's rows come from.
enum class RowsFrom { source, own_source, own_rows };

void parse_rows(Spec& spec, RowsFrom from, Job& job) {
  if (from == RowsFrom::own_rows) return;
  const bool own = from == RowsFrom::own_source;
  // Both are keys that a job may have, whichever it has.
  spec.raw("source");
  const bool several = !own && spec.raw("sources") != nullptr;
  if (!own && !several && !spec.has("source"))
    spec.refuse("source", "this section is missing", "add " + source_example());
  if (!several && !spec.has("fields"))
    spec.refuse("fields", "this section is missing",
                "name the tensors of a batch");
  if (!several && spec.has("source")) {
    const Json& section = *spec.raw("source");
    job.source = own ? parse_own_source_spec(section, "source")
                     : parse_source_spec(section, "source");
  }
  if (const Json* fields = spec.raw("fields"))
    job.fields = parse_fields(*fields, "fields");
}

/// The sources that are mixed: what else there is has been read.
void parse_several(Spec& spec, RowsFrom from, Job& job) {
  if (from == RowsFrom::source && spec.has("sources")) {
    job.sources =
        parse_mixed_sources(spec, {.fields = job.fields,
                                   .split = job.split,
                                   .drawing = job.loading.drawing,
                                   .preparing = job.loading.preparing});
    job.fields = job.sources.front().fields;
    return;
  }
  if (!job.loading.exhausted) return;
  Spec(*spec.raw("loader"), "loader")
      .refuse("exhausted",
              "the setting applies to several \"sources\", and the job has one "
              "source",
              "leave it out");
}

/// What cannot be cross-validated.
void check_folds(Spec& train, const Job& job) {
  if (job.split.folds > 0)
    train.refuse("folds",
                 "split.folds and split.fold already choose one of the folds",
                 "leave out one of the two: train.folds trains all of them");
  if (job.model.none())
    train.refuse("folds", "the job has no model to validate",
                 "name a model, or leave out train.folds");
  if (job.model.kind == "own")
    train.refuse("folds", "an own model is trained on one division of the rows",
                 "train it once for each fold, with split.folds and "
                 "split.fold");
}

Job checked_job(const Json& given, RowsFrom from,
                const SchemaOfSource& schema_of) {
  Job job;
  job.document = written_out(given, schema_of);
  const Json& document = job.document;
  Spec spec(document, "");
  const Json none{Json::Object{}};
  auto section = [&](std::string_view key) {
    const Json* found = spec.raw(key);
    return Spec(found == nullptr ? none : *found, std::string(key));
  };
  parse_rows(spec, from, job);
  job.split = parse_split(spec.raw("split"), "split");
  job.loading = loading_settings().parse(section("loader"));
  job.split.share = job.loading.limit_share;
  job.split.most = job.loading.limit_rows;
  parse_several(spec, from, job);
  if (from != RowsFrom::own_rows)  // before anything is read
    BatchOperations(job.loading.options, {.outputs = outputs_of(job.fields)});
  job.model = parse_model(spec.raw("model"), job.fields);
  if (!job.model.none() && !job.sources.empty())
    spec.refuse(
        "model",
        "the model trains on the rows of one source, and the job has several",
        "set it to \"none\", or combine the sources into one: \"kind\": "
        "\"concatenated\"");
  Spec train = section("train");
  training_settings().read(train, job.training);
  learning_settings().read(train, job.model.learning);
  check_switches(train, job.model);
  if (!job.model.none())
    check_metric(train, job.training.metric, job.model, job.fields);
  if (job.training.folds) check_folds(train, job);
  if (from != RowsFrom::own_rows && !job.split.validates() &&
      !job.training.folds)
    check_held_out(job, "split.val is 0");
  train.finish();
  const Json* device = spec.raw("device");
  job.device =
      parse_device_spec(device == nullptr ? Json("auto") : *device, "device");
  job.output = output_settings().parse(section("output"));
  spec.finish();
  return job;
}

}  // namespace

void check_held_out(const Job& job, const std::string& why_none) {
  const TrainSection& training = job.training;
  if (job.model.none()) return;  // nothing is validated
  if (job.split.folds > 0)
    throw Error(
        ErrorKind::request,
        {.code = "train.no_held_out_rows",
         .what = "cannot validate the fold",
         .where = "split.folds",
         .why = "no rows are in part " + std::to_string(job.split.fold) +
                " of " + std::to_string(job.split.folds) + ": " + why_none,
         .next = "use fewer folds"});
  const char* key = training.patience                              ? "patience"
                    : training.metric != "loss"                    ? "metric"
                    : training.keep && training.keep != Keep::last ? "keep"
                                                                   : nullptr;
  if (key == nullptr) return;
  throw Error(ErrorKind::request,
              {.code = "train.no_held_out_rows",
               .what = "cannot determine which weights are the best",
               .where = std::string("train.") + key,
               .why = "no rows are held out to validate the model: " + why_none,
               .next = std::string("hold some out, for example with \"split\": "
                                   "0.8; or leave out train.") +
                       key});
}

namespace {

/// Adds a next step to an error that has none.
Job advised_job(const Json& document, RowsFrom from,
                const SchemaOfSource& schema_of = schema_of_section) {
  try {
    return checked_job(document, from, schema_of);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (parts.next.empty())
      parts.next = "look up the key and its values with 'penstock schema'";
    throw Error(error.kind(), std::move(parts));
  }
}

}  // namespace

Job parse_job(const Json& document) {
  return advised_job(document, RowsFrom::source);
}

Job parse_job_of_rows(const Json& document) {
  return advised_job(document, RowsFrom::own_rows);
}

Job parse_job_of_source(const Json& document, const Schema& schema) {
  return advised_job(document, RowsFrom::own_source,
                     [&](const Json&) { return schema; });
}

Job load_job(const std::string& path, const std::vector<std::string>& sets) {
  return parse_job(read_job(path, sets));
}

}  // namespace penstock
