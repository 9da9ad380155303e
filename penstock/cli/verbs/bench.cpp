#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "penstock/base/shown.h"
#include "penstock/base/table_text.h"
#include "penstock/cli/output.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/run/run.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

constexpr double kNear = 0.9;  // of the ceiling

struct BenchArguments {
  std::string job;
  std::vector<std::string> sets;
  double seconds = 1;
  int repeats = 3;
  std::string batch_size;  // rows, "auto", or empty
  bool ceiling = false, apply = false;
};

std::string rate(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.0f", value);
  return text;
}

std::string percent(const Json& share) {
  return share.is_null() ? "n/a" : shown_percent(share.number(), 1);
}

std::string named(const Json& setting) {
  return "workers " + setting.find("loader.workers")->dump() + ", prefetch " +
         setting.find("loader.prefetch")->dump();
}

std::string ceiling_of(const Json& json) {
  const Json& ceiling = *json.find("ceiling");
  if (ceiling.is_null())
    return "the steps take no time here: the rates are those of the input "
           "alone\n";
  return "the steps alone, without any input: " + rate(ceiling.number()) +
         " samples/s\n";
}

/// The settings of a sweep, and how far apart its rounds are.
class SweepRows {
 public:
  explicit SweepRows(const Json& json)
      : json_(json), settings_(json.find("settings")->array()) {
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const Json& of = *settings_[i].find("rate");
      noise_ = std::max(
          noise_,
          (of.find("max")->number() - of.find("min")->number()) / median(i));
      is_beaten_ |= median(i) > median(at("best"));
    }
  }

  std::size_t at(const char* key) const {
    return static_cast<std::size_t>(json_.find(key)->integer());
  }
  const Json& setting(const char* key) const { return settings_[at(key)]; }
  bool is_beaten() const { return is_beaten_; }
  double noise() const { return noise_; }

  std::string table() const {
    std::vector<std::vector<std::string>> rows = {
        {"workers", "prefetch", "samples/s", "min", "max", "AU", ""}};
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const Json& of = *settings_[i].find("rate");
      rows.push_back({settings_[i].find("loader.workers")->dump(),
                      settings_[i].find("loader.prefetch")->dump(),
                      rate(of.find("median")->number()),
                      rate(of.find("min")->number()),
                      rate(of.find("max")->number()),
                      percent(*settings_[i].find("au")), mark(i)});
    }
    return table_text(rows);
  }

 private:
  double median(std::size_t i) const {
    return settings_[i].find("rate")->find("median")->number();
  }
  std::string mark(std::size_t i) const {
    return std::string(median(i) > median(at("best")) ? "(noise)"
                       : i != at("best")              ? ""
                       : is_beaten_                   ? "chosen"
                                                      : "best") +
           (i == at("present") ? " (present)" : "");
  }

  const Json& json_;
  const std::vector<Json>& settings_;
  double noise_ = 0;  // by which rounds of one setting differ
  bool is_beaten_ = false;
};

std::string best_of_ceiling(const Json& json) {
  const Json* of = json.find("best_of_ceiling");
  if (of == nullptr) return {};
  return "the best reaches " + percent(*of) + " of that" +
         (of->number() < kNear ? "; to find the bottleneck, run penstock "
                                 "train, then penstock explain"
                               : "") +
         "\n";
}

std::string summary_of_sweep(const Json& json) {
  if (json.find("settings") == nullptr)
    return json.find("ceiling")->is_null()
               ? "there is no upper limit to compare with: the steps take no "
                 "time here\n"
               : ceiling_of(json);
  const SweepRows sweep(json);
  std::string text = sweep.table() +
                     "batches are always copied from pinned memory if the "
                     "device has it: there is no setting to try\n\n";
  for (const Json& step : json.find("cumulative")->array())
    text += step.find("what")->string() + ": " +
            rate(step.find("rate")->number()) + " samples/s\n";
  text += ceiling_of(json) + best_of_ceiling(json);
  if (sweep.is_beaten())
    text +=
        "(noise): a higher rate, but rounds with the same setting differ by up "
        "to " +
        percent(Json(sweep.noise())) + "\n";
  if (sweep.at("best") == sweep.at("present"))
    return text +
           "keep the present settings: no other is faster by more than 2 % and "
           "the noise\n";
  text += "best: " + named(sweep.setting("best")) + ", " +
          percent(*json.find("gain")) + " faster than the present " +
          named(sweep.setting("present")) + "\n";
  if (json.find("rounds")->integer() == 1)
    text += "measured in one round: the noise is unknown\n";
  return text;
}

bool is_job(const BenchArguments& arguments) {
  return names_job(arguments.job);
}

/// The job of the file, or one over the source.
Json document_of(const BenchArguments& arguments,
                 const Invocation& invocation) {
  if (is_job(arguments)) {
    Json document = read_job(arguments.job, arguments.sets);
    if (!arguments.batch_size.empty())
      apply_setting(document, "loader.batch_size=" + arguments.batch_size);
    return document;
  }
  if (arguments.apply)
    throw Error(ErrorKind::request,
                {.code = "cli.arguments",
                 .what = "cannot write the best settings",
                 .where = "--apply",
                 .why = "'" + without_password(arguments.job) +
                        "' is a source, not a job file",
                 .next = "leave --apply out, or name a job file, NAME.json"});
  constexpr std::int64_t kRows = 256;
  Json document = job_of_source(arguments.job, kRows, {invocation.stop});
  if (!arguments.batch_size.empty())
    apply_setting(document, "loader.batch_size=" + arguments.batch_size);
  for (const std::string& set : arguments.sets) apply_setting(document, set);
  return document;
}

/// Writes a job beside the one that was named; the file's name.
std::string written_beside(const BenchArguments& arguments,
                           const Json& document) {
  std::filesystem::path path = arguments.job;
  path.replace_extension(".tuned.json");
  real_files().write_atomic(path, document.dump(2) + "\n");
  return path.string();
}

/// "the largest batch: 96 rows ...", below what was tried.
std::string summary_of_search(const FoundBatch& found) {
  std::vector<std::vector<std::string>> rows = {
      {"rows", "memory", "rows/s", ""}};
  for (const TriedBatch& one : found.tried)
    rows.push_back({std::to_string(one.rows),
                    one.fits
                        ? shown_bytes(static_cast<std::size_t>(one.peak_bytes))
                        : "does not fit",
                    one.fits ? rate(one.rows_per_s) : "",
                    one.rows == found.rows ? "chosen" : ""});
  constexpr const char* kWhy[] = {
      "more rows would leave less than 8 % of the memory free",
      "more rows would hardly train more rows per second",
      "more rows are not needed"};
  return table_text(rows) + "loader.batch_size: " + std::to_string(found.rows) +
         "; " + kWhy[static_cast<std::size_t>(found.by)] + "\n";
}

/// The largest batch, in place of a sweep.
void run_search(const BenchArguments& arguments, Terminal& terminal,
                Json document, const Invocation& invocation) {
  const FoundBatch found = find_batch_size(
      parse_job(document),
      [&](const std::string& line) { terminal.note(line); }, {invocation.stop});
  Json json;
  json["batch_size"] = json_of(found);
  std::string written;
  if (arguments.apply) {
    apply_setting(document, "loader.batch_size=" + std::to_string(found.rows));
    written = written_beside(arguments, document);
    json["written"] = written;
  }
  if (invocation.json) return print_document(json);
  print(summary_of_search(found));
  if (!written.empty()) print("wrote " + written + "\n");
}

/// Writes the job with its best settings beside it; the file's name.
std::string write_tuned(const BenchArguments& arguments, Json document,
                        const Json& json) {
  const auto best = static_cast<std::size_t>(json.find("best")->integer());
  for (const char* key : {"loader.workers", "loader.prefetch"})
    apply_setting(document,
                  std::string(key) + "=" +
                      json.find("settings")->array()[best].find(key)->dump());
  return written_beside(arguments, document);
}

void run_bench(const BenchArguments& arguments, Invocation& invocation) try {
  Terminal terminal;
  Sweep sweep{
      .seconds = arguments.seconds,
      .repeats = arguments.repeats,
      .ceiling_only = arguments.ceiling,
      .stop = invocation.stop,
      .progress = [&](const std::string& line) { terminal.progress(line); }};
  const Json document = document_of(arguments, invocation);
  if (arguments.batch_size == "auto")
    return run_search(arguments, terminal, document, invocation);
  Json json = sweep_settings(parse_job(document), sweep);
  terminal.end();
  std::string written;
  if (arguments.apply && !arguments.ceiling)
    written = write_tuned(arguments, document, json);
  if (!written.empty()) json["written"] = written;
  if (invocation.json) return print_document(json);
  print(summary_of_sweep(json));
  if (!written.empty()) print("wrote " + written + "\n");
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

RunVerb add_bench(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<BenchArguments>();
  options.add("job", arguments->job,
              "A job file, NAME.json, or a source: " + source_examples(),
              {.required = true});
  options.add("--batch-size", arguments->batch_size,
              "Rows in a batch, or auto: find the largest batch that fits in "
              "memory and is worth it. Default: the job's, or 256 for a "
              "source");
  options.flag(
      "--ceiling", arguments->ceiling,
      "Run the steps alone, over one batch: the rate with perfect input");
  options.flag("--apply", arguments->apply,
               "Write the job with the best settings to JOB.tuned.json");
  options.add("--seconds", arguments->seconds,
              "Seconds of steps for each setting and round",
              {.least = 0.01, .most = 3600});
  options.add("--repeats", arguments->repeats,
              "Number of rounds over all settings", {.least = 1, .most = 1000});
  add_sets(options, arguments->sets);
  add_json(options, invocation, "One JSON document");
  return [arguments](Invocation& of) { run_bench(*arguments, of); };
}

}  // namespace

Verb bench_verb() {
  return {
      .name = "bench",
      .help =
          "Measure a job or a source with different workers and batch sizes",
      .example = "penstock bench job.json --apply",
      .ends_in_order = true,
      .add = add_bench};
}

}  // namespace penstock
