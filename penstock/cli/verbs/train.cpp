#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "penstock/cli/local_ranks.h"
#include "penstock/cli/output.h"
#include "penstock/cli/python_program.h"
#include "penstock/cli/terminal.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/report/report.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"
#include "penstock/sources/sources.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

struct TrainArguments {
  std::string job, resume, init, target, input, base, out, model, output;
  std::string manifest, strategy;
  std::vector<std::string> sets;
  std::int64_t skip = 0;
  int ranks = 1;
  bool plan = false, estimate = false, trace = false, or_begin = false;

  /// A job is resumed, not a run that is named.
  bool resumes_newest() const { return !job.empty() && resume == kNewest; }
  static constexpr const char* kNewest = "latest";
};

[[noreturn]] void refuse(std::string where, std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = "cli.arguments",
                                   .what = "cannot start the training",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

void check_resumption(const TrainArguments& arguments) {
  const bool newest = arguments.resumes_newest();
  if (arguments.or_begin && !newest)
    refuse("--or-begin",
           "it says what to do where a job has no run yet, and the command "
           "does not resume the newest run of a job",
           "use it with a job file and --resume latest");
  if (newest && arguments.skip != 0)
    refuse("--skip", "steps are skipped of a run that is named",
           "name the folder of the run with --resume in place of 'latest'");
}

/// Several ranks train one job; what else the verb does, one process does.
void check_ranks(const TrainArguments& arguments, bool given) {
  if (!given) return;
  check_no_rank();
  const std::pair<const char*, bool> others[] = {
      {"--plan", arguments.plan},
      {"--estimate", arguments.estimate},
      {"--init", !arguments.init.empty()}};
  for (const auto& [option, used] : others)
    if (used && arguments.ranks > 1)
      refuse("--ranks", std::string(option) + " is done by one process",
             "leave out --ranks, or " + std::string(option));
}

/// Exactly one of a job, a run and a table must be named; or a job whose newest
/// run is resumed.
void check_what_is_named(const TrainArguments& arguments) {
  check_resumption(arguments);
  const bool manifest = !arguments.manifest.empty() && arguments.job.empty();
  const bool resumes = !arguments.resume.empty() && !arguments.resumes_newest();
  const int named =
      !arguments.job.empty() + resumes + !arguments.init.empty() + manifest;
  if (!arguments.manifest.empty() &&
      !(arguments.resume.empty() && arguments.init.empty()))
    refuse("--manifest",
           "a manifest applies to a new job, not to --resume or --init",
           "use it with a job file, or alone");
  const char* const next =
      "name a job file, --resume RUN, or --init TABLE --target COLUMN";
  const bool of_init = !arguments.target.empty() || !arguments.input.empty() ||
                       !arguments.base.empty();
  if (named == 0 && !of_init)
    refuse("the command line", "the command names neither a job nor a run",
           next);
  if (named > 1)
    refuse("the command line",
           arguments.init.empty()
               ? "the command names both a job and a run; with a job file, "
                 "--resume takes only 'latest'"
               : "--init writes a new job, and the command "
                 "also names a job or a run",
           "name only one: a job file, --resume RUN, or --init TABLE --target "
           "COLUMN");
  if (!arguments.init.empty()) return;
  const std::pair<const char*, const std::string*> options[] = {
      {"--target", &arguments.target},
      {"--input", &arguments.input},
      {"--base", &arguments.base},
      {"--out", &arguments.out}};
  for (const auto& [option, value] : options)
    if (!value->empty())
      refuse(option, "only --init writes a job file",
             "use it with --init: --init train.parquet --target species, "
             "--init images:photos, --init chats.jsonl --base MODEL");
}

/// "penguins.json" for data/penguins.csv.gz; of a database its table's; of
/// penguins.json itself "penguins.job.json".
std::string name_of_job(const SourceSpec& source) {
  std::filesystem::path path = source.path;
  if (path.filename().empty()) path = path.parent_path();
  std::string name =
      source.table.empty() ? path.filename().string() : source.table;
  name = name.substr(0, name.find('.', 1));
  for (char& c : name)  // of a pattern, say
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  if (name.empty()) name = "table";
  std::error_code none;
  const bool itself =
      std::filesystem::equivalent(name + ".json", source.path, none);
  return name + (itself ? ".job.json" : ".json");
}

/// Writes the job that --init asks for; its name.
std::string write_new_job(const TrainArguments& arguments, Terminal& terminal,
                          const Invocation& invocation) {
  const SourceSpec source = parse_source_spec(Json(arguments.init), "--init");
  const std::string name =
      arguments.out.empty() ? name_of_job(source) : arguments.out;
  std::error_code none;
  if (std::filesystem::exists(name, none))
    throw Error(ErrorKind::request,
                {.code = "init.exists",
                 .what = "cannot write the job file",
                 .where = name,
                 .why = "the file exists",
                 .next = "train the model with 'penstock train " + name +
                         "', or name another with --out"});
  if (source.kind != "images")
    terminal.note("reading the rows once to find what they hold");
  const std::string text = new_job_text({.source = source,
                                         .target = arguments.target,
                                         .name = name,
                                         .input = arguments.input,
                                         .base = arguments.base},
                                        {invocation.stop});
  real_files().write_atomic(name, text);
  terminal.note("wrote " + name + "; 'penstock train " + name +
                "' runs it again");
  return name;
}

/// What became of the keys of a manifest, none left out.
Json shown(const std::vector<ManifestKey>& keys) {
  Json all(Json::Array{});
  for (const ManifestKey& key : keys) {
    Json entry;
    entry["key"] = key.key;
    entry["value"] = key.value;
    entry["understood"] = key.understood;
    entry["settings"] = Json(Json::Array{});
    for (const std::string& setting : key.settings)
      entry["settings"].push_back(setting);
    if (!key.why.empty()) entry["why"] = key.why;
    all.push_back(std::move(entry));
  }
  return all;
}

/// The job of the file, or of the run that is resumed; with the keys of a
/// manifest, which `said` tells about.
Json document_of(const TrainArguments& arguments,
                 std::vector<ManifestKey>& said) {
  if (!arguments.resume.empty() && !arguments.resumes_newest())
    return document_of_run(arguments.resume, arguments.sets);
  if (arguments.manifest.empty())
    return read_job(arguments.job, arguments.sets);
  Json document = arguments.job.empty() ? Json(Json::Object{})
                                        : read_job(arguments.job, {});
  said = apply_manifest(read_manifest(arguments.manifest), document);
  for (const std::string& set : arguments.sets) apply_setting(document, set);
  return document;
}

Job job_of(const TrainArguments& arguments, std::vector<ManifestKey>& said) {
  if (arguments.skip != 0 && (arguments.resume.empty() || arguments.plan))
    throw Error(ErrorKind::request,
                {.code = "cli.arguments",
                 .what = "cannot skip steps",
                 .where = "--skip",
                 .why = arguments.plan ? "--plan runs no training steps"
                                       : "--skip applies only to a resumed run",
                 .next = arguments.plan ? "leave out --skip or --plan"
                                        : "name the run with --resume"});
  Json document = document_of(arguments, said);
  if (!arguments.model.empty()) use_own_model(document, arguments.model);
  return parse_job(document);
}

/// Of a job whose newest run is resumed, the same with that run in its place,
/// for as long as the job says now.
TrainArguments with_newest_run(TrainArguments arguments, const Job& job) {
  if (!arguments.resumes_newest()) return arguments;
  arguments.resume = newest_run_or_begin(job, arguments.or_begin);
  if (arguments.resume.empty()) return arguments;
  arguments.job.clear();
  const TrainSection& length = job.training;
  arguments.sets.push_back("train.epochs=" + std::to_string(length.epochs));
  arguments.sets.push_back(
      "train.max_steps=" +
      (length.max_steps ? std::to_string(*length.max_steps) : "null"));
  return arguments;
}

/// What penstock.training does in place of this program.
Json request_of(const TrainArguments& arguments, bool json) {
  Json request;
  request["job"] = arguments.job;
  request["manifest"] = arguments.manifest;
  request["resume"] = arguments.resume;
  request["model"] = arguments.model;
  request["output"] = arguments.output;
  request["skip"] = arguments.skip;
  request["trace"] = arguments.trace;
  request["estimate"] = arguments.estimate;
  request["sets"] = Json::Array{};
  for (const std::string& set : arguments.sets) request["sets"].push_back(set);
  request["json"] = json;
  return request;
}

/// Ends with what would end the run later.
void show_plan(const Job& job, const TrainArguments& arguments,
               Terminal& terminal, Invocation& invocation) try {
  if (job.model.kind == "own")
    check_with_python("penstock.training",
                      request_of(arguments, invocation.json));
  if (!arguments.output.empty()) check_can_write(arguments.output);
  auto note = [&](const std::string& line) { terminal.note(line); };
  DatasetFacts facts = plan_rows(job, note, {invocation.stop});
  if (invocation.json) return print_document(plan_json(job, facts));
  print(std::to_string(facts.on_side[0]) + " train + " +
        std::to_string(facts.on_side[1]) + " val" +
        (facts.on_side[2] > 0
             ? " + " + std::to_string(facts.on_side[2]) + " test"
             : "") +
        " rows; where they will be stored:\n" + facts.plan.text());
  print(preparations_text(facts));
  print(mixture_text(job, facts));
  if (std::string line = order_line(train_order(job, facts)); !line.empty())
    print(line + "\n");
  if (std::string line = chunk_line(train_order(job, facts), facts);
      !line.empty())
    print(line + "\n");
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

void show_estimate(const Job& job, Terminal& terminal,
                   Invocation& invocation) try {
  const MemoryEstimate estimate =
      estimate_job(job, {.stop = invocation.stop,
                         .listener = {.note = [&](const std::string& line) {
                           terminal.note(line);
                         }}});
  if (!invocation.json) return print(memory_line(estimate) + "\n");
  Json document;
  document["memory"] = json_of(estimate);
  print_document(document);
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
}

/// What settings of fields cost that give up exactness.
void tell_costs(const Job& job, Terminal& terminal) {
  for (const Field& field : job.fields)
    if (const std::string& costs = field.kind->facts().costs; !costs.empty())
      terminal.note("field '" + field.name + "', " + costs);
}

/// False where it was stopped before the file was written.
bool write_if_asked(TrainArguments& arguments, Terminal& terminal,
                    Invocation& invocation) try {
  if (!arguments.init.empty())
    arguments.job = write_new_job(arguments, terminal, invocation);
  return true;
} catch (const Error& error) {
  if (!is_stop(error)) throw;
  invocation.interrupted = true;
  return false;
}

void run_train(TrainArguments arguments, Invocation& invocation) {
  check_what_is_named(arguments);
  check_ranks(arguments, names_ranks(invocation.command));
  if (!arguments.strategy.empty())
    arguments.sets.push_back("train.strategy=" + arguments.strategy);
  Terminal terminal;
  if (!write_if_asked(arguments, terminal, invocation)) return;
  std::vector<ManifestKey> said;
  Job job = job_of(arguments, said);
  for (const ManifestKey& key : said) terminal.note(key.text());
  tell_costs(job, terminal);
  if (arguments.plan) return show_plan(job, arguments, terminal, invocation);
  if (arguments.ranks > 1) {
    invocation.exit_code =
        run_as_ranks(invocation.command, arguments.ranks, invocation.json);
    return;
  }
  end_with_launcher();
  if (job.model.kind == "own")
    become_python(
        "penstock.training",
        request_of(with_newest_run(arguments, job), invocation.json).dump());
  if (arguments.estimate) return show_estimate(job, terminal, invocation);
  TrainListener listener{
      .note = [&](const std::string& line) { terminal.note(line); },
      .progress = [&](const Progress& p) { terminal.progress(p); }};
  const bool newest = arguments.resumes_newest();
  TrainResult result = train(job, {.stop = invocation.stop,
                                   .save = invocation.save,
                                   .listener = std::move(listener),
                                   .resume = newest ? "" : arguments.resume,
                                   .resume_newest = newest,
                                   .or_begin = arguments.or_begin,
                                   .skip = arguments.skip,
                                   .output = arguments.output,
                                   .trace = arguments.trace});
  terminal.end();
  invocation.interrupted = result.interrupted;
  if (result.rank != 0) return;  // rank 0 prints what all of them did
  if (!said.empty()) result.report["manifest"] = shown(said);
  if (invocation.json)
    print_document(result.report);
  else
    print(summary_of(result.report));
}

RunVerb add_train(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<TrainArguments>();
  options.add("job", arguments->job, "The job file");
  options.add("--resume", arguments->resume,
              "Folder of an interrupted run to resume. With a job: 'latest', "
              "the newest run of that job");
  options.flag("--or-begin", arguments->or_begin,
               "With a job and --resume latest: begin a run if the job has "
               "none yet");
  options.add("--ranks", arguments->ranks,
              "Train on so many processes of this machine",
              {.least = 1, .most = 1024});
  options.add("--init", arguments->init,
              "Write a job file for this table, or folder of images or sounds, "
              "or file of texts (a source as for peek), and run it");
  options.add("--target", arguments->target,
              "With --init of a table: column to predict");
  options.add("--input", arguments->input,
              "With --init of HDF5: the array that the model sees, if there "
              "are several");
  options.add("--base", arguments->base,
              "With --init of texts: folder of a Hugging Face model");
  options.add(
      "--out", arguments->out,
      "With --init: job file to write. Default: the table's name + .json");
  options.add("--manifest", arguments->manifest,
              "Settings of another training program, as JSON or YAML, with or "
              "without a job file. Each key's translation is reported");
  options.add("--model", arguments->model,
              "Your own torch module instead of the job's model: FILE.py:NAME");
  options.add("--strategy", arguments->strategy,
              "How several ranks train your own module: ddp, fsdp2 or "
              "deepspeed (train.strategy)");
  options.add("--output", arguments->output,
              "Folder for the weights at the end of the run");
  options.add(
      "--skip", arguments->skip,
      "With --resume: steps of data to skip. Below 0: steps to take again",
      {.least = INT64_MIN});
  options.flag("--plan", arguments->plan,
               "Read the rows, show where they would be kept, and stop");
  options.flag("--estimate", arguments->estimate,
               "Print the memory that a step of the model takes, and stop");
  options.flag("--trace", arguments->trace,
               "Write the activity of all threads and the device to trace.json "
               "in the run's folder, for ui.perfetto.dev");
  add_sets(options, arguments->sets);
  add_json(options, invocation,
           "Print the report (with --plan: the plan; with --estimate: the "
           "memory) to standard output");
  return [arguments](Invocation& invoked) { run_train(*arguments, invoked); };
}

}  // namespace

Verb train_verb() {
  return {.name = "train",
          .help = "Run a job",
          .example = "penstock train job.json --set loader.cache=none",
          .ends_in_order = true,
          .add = add_train};
}

}  // namespace penstock
