#include "penstock/cli/verbs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "penstock/cli/terminal.h"
#include "penstock/demo/demo.h"
#include "penstock/run/run.h"

namespace penstock {
namespace {

bool is_closed_terminal(int reason) {
  struct stat found {};
  return reason == EIO && ::fstat(STDOUT_FILENO, &found) == 0 &&
         S_ISCHR(found.st_mode);
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  int reason = errno;
  if (reason == EPIPE || is_closed_terminal(reason)) throw OutputClosed();
  throw Error(ErrorKind::request, {.code = "cli.output",
                                   .what = "cannot write the result",
                                   .where = "standard output",
                                   .why = std::strerror(reason),
                                   .next = "send it to a place that has room"});
}

void print_document(const Json& json) { print(json.dump(2) + "\n"); }

/// Refuses what is no whole number of T's range, from `least` on: what lies
/// beyond that range, CLI11 takes for its end.
template <class T>
CLI::Validator whole_number(T least) {
  auto why_not = [least](const std::string& text) {
    T value{};
    const char* end = text.data() + text.size();
    auto [to, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && to == end && value >= least)
      return std::string();
    return "found '" + text + "', expected a whole number from " +
           std::to_string(least) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  };
  return CLI::Validator(why_not, ">= " + std::to_string(least));
}

TrainListener listener_of(Terminal& terminal) {
  return {.note = [&](const std::string& line) { terminal.note(line); },
          .progress = [&](const Progress& p) { terminal.progress(p); }};
}

std::string train_summary(const Json& report) {
  auto number = [&](const Json& json, const char* key) {
    const Json* found = json.find(key);
    return found != nullptr && found->is_number() ? found->number() : 0.0;
  };
  const Json& verdict = *report.find("verdict");
  char text[400];
  const Json* au = report.find("au");
  std::string utilisation = "n/a";
  if (au->is_number()) {
    std::snprintf(text, sizeof(text), "%.1f %%", 100 * au->number());
    utilisation = text;
  }
  std::snprintf(text, sizeof(text),
                "%.0f steps, %.0f samples/s, first batch after %.0f ms, "
                "accelerator utilisation %s\n%s: %s\nreport: %s/report.json\n",
                number(report, "steps"), number(report, "samples_per_s"),
                number(report, "first_batch_ms"), utilisation.c_str(),
                verdict.find("limit")->string().c_str(),
                verdict.find("cause")->string().c_str(),
                report.find("run")->string().c_str());
  return text;
}

/// "A:B", half-open.
void parse_steps(const std::string& text, BatchQuery& query) {
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, query.first_step);
  bool good = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  if (good) {
    auto last = std::from_chars(first.ptr + 1, end, query.end_step);
    good = last.ec == std::errc() && last.ptr == end;
  }
  if (good && query.first_step >= 0 && query.end_step >= query.first_step)
    return;
  throw Error(ErrorKind::request,
              {.code = "cli.steps",
               .what = "cannot use the steps '" + text + "'",
               .where = "--steps",
               .why = "expected A:B with 0 <= A <= B",
               .next = "for example --steps 10:12"});
}

void check_rank(const Rank& rank) {
  if (rank.world >= 1 && rank.rank >= 0 && rank.rank < rank.world) return;
  throw Error(ErrorKind::request,
              {.code = "cli.rank",
               .what = "cannot use rank " + std::to_string(rank.rank) + " of " +
                       std::to_string(rank.world),
               .where = "--rank, --world",
               .why = "expected 0 <= rank < world",
               .next = "ranks count from 0: --rank 0 --world 2"});
}

void add_train(CLI::App& app, Verbs& verbs) {
  struct Arguments {
    std::string job, resume;
    std::vector<std::string> sets;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("train", "Run a job");
  verb->add_option("job", arguments->job, "The job file");
  verb->add_option("--resume", arguments->resume,
                   "Go on with an interrupted run: its folder");
  verb->add_option("--set", arguments->sets, "section.key=value")
      ->take_all()
      ->default_str("");
  verb->add_flag("--json", verbs.json, "The report on standard output");
  verb->footer("Example: penstock train job.json --set loader.cache=none");
  verb->callback([arguments, &verbs] {
    verbs.ends_in_order = true;
    verbs.run = [arguments, &verbs] {
      if (arguments->job.empty() == arguments->resume.empty())
        throw Error(
            ErrorKind::request,
            {.code = "cli.arguments",
             .what = "cannot tell what to train",
             .where = "the command line",
             .why = arguments->job.empty() ? "neither a job nor a run is named"
                                           : "both a job and a run are named",
             .next = "name either a job file or --resume RUN"});
      Job job;
      if (arguments->resume.empty()) {
        job = load_job(arguments->job, arguments->sets);
      } else {
        Json document = job_of_run(arguments->resume).document;
        for (const std::string& set : arguments->sets)
          apply_setting(document, set);
        job = parse_job(document);
      }
      Terminal terminal;
      TrainResult result = train(job, {.stop = verbs.stop,
                                       .save = verbs.save,
                                       .listener = listener_of(terminal),
                                       .resume = arguments->resume});
      terminal.end();
      verbs.interrupted = result.interrupted;
      if (verbs.json)
        print_document(result.report);
      else
        print(train_summary(result.report));
    };
  });
}

void add_batch(CLI::App& app, Verbs& verbs) {
  struct Arguments {
    std::string job, steps = "0:1", split = "train";
    std::vector<std::string> sets;
    BatchQuery query;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand(
      "batch", "Show which samples are in a step, and their tensors");
  verb->add_option("job", arguments->job, "The job file")->required();
  verb->add_option("--epoch", arguments->query.epoch, "From 0")
      ->check(whole_number<std::int64_t>(0));
  verb->add_option("--steps", arguments->steps, "A:B, half-open");
  verb->add_option("--split", arguments->split, "train or val")
      ->check(CLI::IsMember({"train", "val"}));
  verb->add_option("--rank", arguments->query.rank.rank, "Of --world");
  verb->add_option("--world", arguments->query.rank.world, "Number of ranks");
  verb->add_option("--out", arguments->query.out,
                   "Write one .safetensors per step into this folder");
  verb->add_option("--set", arguments->sets, "section.key=value")
      ->take_all()
      ->default_str("");
  verb->add_flag("--json", verbs.json, "Errors as a document");
  verb->footer("Example: penstock batch job.json --epoch 3 --steps 10:12");
  verb->callback([arguments, &verbs] {
    verbs.ends_in_order = true;
    verbs.run = [arguments, &verbs] {
      BatchQuery& query = arguments->query;
      parse_steps(arguments->steps, query);
      check_rank(query.rank);
      query.side = arguments->split == "val" ? Side::val : Side::train;
      query.stop = verbs.stop;
      bool whole =
          look_at_batches(load_job(arguments->job, arguments->sets), query,
                          [](const Json& line) { print(line.dump() + "\n"); });
      verbs.interrupted = !whole;
    };
  });
}

void add_demo(CLI::App& app, Verbs& verbs) {
  struct Arguments {
    std::int64_t rows = 4030;
    std::uint64_t seed = 1;
    std::string to, json_type = "json";
    bool replace = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* demo = app.add_subcommand("demo", "Write a demonstration data set");
  demo->require_subcommand(1);
  CLI::App* verb = demo->add_subcommand(
      "positions", "Receivers that heard a transmitter, with its position");
  verb->add_option("--rows", arguments->rows, "How many")
      ->check(whole_number<std::int64_t>(1));
  verb->add_option("--seed", arguments->seed, "The same seed, the same rows")
      ->check(whole_number<std::uint64_t>(0));
  verb->add_option("--to", arguments->to, "sqlite:PATH or postgresql://...")
      ->required();
  verb->add_option("--json-type", arguments->json_type, "jsonb, json or text")
      ->check(CLI::IsMember({"jsonb", "json", "text"}));
  verb->add_flag("--replace", arguments->replace, "Replace an existing table");
  verb->add_flag("--json", verbs.json, "Errors as a document");
  verb->footer("Example: penstock demo positions --rows 4030 --to sqlite:d.db");
  verb->callback([arguments, &verbs] {
    verbs.ends_in_order = true;
    verbs.run = [arguments, &verbs] {
      std::string to = arguments->to;
      if (to.find('#') == std::string::npos) to += "#measurements";
      Terminal terminal;
      std::int64_t rows = write_positions_demo(
          {.rows = arguments->rows,
           .seed = arguments->seed,
           .to = parse_source_spec(Json(to), "--to"),
           .json_type = arguments->json_type,
           .replace = arguments->replace,
           .progress =
               [&](const std::string& line) { terminal.progress(line); },
           .stop = verbs.stop});
      terminal.end();
      verbs.interrupted = rows == 0;
      Json json;
      json["rows"] = rows;
      json["to"] = without_password(arguments->to);
      if (verbs.json)
        print_document(json);
      else if (rows > 0)
        print("wrote " + std::to_string(rows) + " rows to " +
              without_password(arguments->to) + "\n");
    };
  });
}

void add_peek(CLI::App& app, Verbs& verbs) {
  auto uri = std::make_shared<std::string>();
  CLI::App* verb =
      app.add_subcommand("peek", "Show the schema and first rows of a source");
  verb->add_option("source", *uri,
                   "sqlite:PATH#table or postgresql://...#table")
      ->required();
  verb->add_flag("--json", verbs.json, "One JSON document");
  verb->footer("Example: penstock peek sqlite:demo.sqlite#measurements");
  verb->callback(
      [uri, &verbs] { verbs.run = [uri] { print_document(peek(*uri)); }; });
}

void add_doctor(CLI::App& app, Verbs& verbs) {
  CLI::App* verb = app.add_subcommand(
      "doctor", "Say what this machine and this build can do");
  verb->add_flag("--json", verbs.json, "One JSON document");
  verb->callback([&verbs] {
    verbs.run = [&verbs] {
      Json json = doctor();
      if (verbs.json) return print_document(json);
      print(json.find("machine")->dump(2) + "\n");
      for (const Json& part : json.find("parts")->array())
        print((std::get<bool>(part.find("there")->value()) ? "  ok  "
                                                           : "  --  ") +
              part.find("part")->string() + ": " + part.find("says")->string() +
              "\n");
    };
  });
}

void add_quickstart(CLI::App& app, Verbs& verbs) {
  auto options = std::make_shared<QuickstartOptions>();
  CLI::App* verb = app.add_subcommand(
      "quickstart", "The main job starved, then fed, with the numbers");
  verb->add_option("--job", options->job, "The job file");
  verb->add_option("--rows", options->rows, "Samples to write")
      ->check(whole_number<std::int64_t>(1));
  verb->add_option("--step-ms", options->step_ms, "Of the simulated step");
  verb->add_option("--round-trip-ms", options->round_trip_ms,
                   "Declared delay per statement");
  verb->add_option("--epochs", options->epochs, "Of each run")
      ->check(whole_number<std::int64_t>(1));
  verb->add_flag("--json", verbs.json, "One JSON document");
  verb->callback([options, &verbs] {
    verbs.ends_in_order = true;
    verbs.run = [options, &verbs] {
      Terminal terminal;
      options->stop = verbs.stop;
      options->note = [&](const std::string& line) { terminal.note(line); };
      options->progress = [&](const Progress& p) { terminal.progress(p); };
      options->failed = [&](const Error& error) {
        verbs.exit_code = exit_code_of(error.kind());
      };
      Json result = quickstart(*options);
      terminal.end();
      verbs.interrupted = verbs.stop->load();
      if (verbs.json) return print_document(result);
      print("\n" + result.find("table")->string());
      std::size_t runs = result.find("runs")->array().size() +
                         (result.find("model")->is_null() ? 0 : 1);
      print("\nreports: " + options->output + "/*/report.json (" +
            std::to_string(runs) + " runs)\n");
    };
  });
}

}  // namespace

void add_verbs(CLI::App& app, Verbs& verbs) {
  add_quickstart(app, verbs);
  add_train(app, verbs);
  add_batch(app, verbs);
  add_peek(app, verbs);
  add_demo(app, verbs);
  add_doctor(app, verbs);
  CLI::App* schema =
      app.add_subcommand("schema", "Print the JSON Schema of the job file");
  schema->add_flag("--json", verbs.json, "It is JSON anyway");
  schema->callback([&verbs] { verbs.run = [] { print(job_schema()); }; });
}

int report_error(const Error& error, bool json) {
  // Where standard output fails, that very error must be seen elsewhere.
  bool told = json && error.parts().code != "cli.output" &&
              std::fputs((error.json() + "\n").c_str(), stdout) >= 0 &&
              std::fflush(stdout) == 0;
  if (!told) std::fprintf(stderr, "penstock: %s\n", error.what());
  return exit_code_of(error.kind());
}

}  // namespace penstock
