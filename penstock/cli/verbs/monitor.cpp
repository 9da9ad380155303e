#include "penstock/monitor/monitor.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "penstock/base/formatted.h"
#include "penstock/base/kernel_files.h"
#include "penstock/base/printable.h"
#include "penstock/base/table_text.h"
#include "penstock/base/user_file.h"
#include "penstock/cli/interpreter_lock.h"
#include "penstock/cli/output.h"
#include "penstock/cli/screen.h"
#include "penstock/cli/verb.h"
#include "penstock/report/report.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

struct MonitorArguments {
  double duration = 0, interval = 1;
  int pid = 0;
  std::string run, gpus = "auto", output, compare;
};

bool is_bytes(const std::string& name) {
  return name.find("bytes") != name.npos;
}

std::string shown_value(const std::string& name, double value) {
  if (is_bytes(name))
    return shown_bytes(static_cast<std::size_t>(std::max(0.0, value))) +
           (name.ends_with("_s") ? "/s" : "");
  const bool percent = name.ends_with("_percent");
  const bool whole = !percent && value == std::floor(value);  // threads, steps
  return formatted("%.*f", whole ? 0 : 1, value) + (percent ? " %" : "");
}

/// What percentages are of stands still; others fill their own range.
std::string curve(const std::string& name, const std::deque<double>& values) {
  static constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄",
                                          "▅", "▆", "▇", "█"};
  double most = name.ends_with("_percent") ? 100 : 0;
  for (double value : values) most = std::max(most, value);
  std::string text;
  const auto first = values.size() > 40 ? values.size() - 40 : 0;
  for (std::size_t i = first; i < values.size(); ++i)
    text += kBars[most > 0 ? static_cast<int>(8 * values[i] / most) : 0];
  return text;
}

/// {reason: the names of what is n/a for it}.
std::map<std::string, std::vector<std::string>> by_reason(const Json& summary) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, reason] : summary.find("not_known")->object())
    names[reason.string()].push_back(name);
  return names;
}

/// The newest numbers.
std::string table_of(const Json& sample, const MachineSeries& series) {
  std::vector<std::vector<std::string>> rows = {{"", "now", "", ""}};
  for (const auto& [name, value] : sample.object()) {
    if (name == "t_s") continue;
    rows.push_back({name, shown_value(name, value.number()),
                    curve(name, series.recent(name))});
    rows.back().resize(4);
  }
  for (const auto& [name, reason] : series.not_known())
    rows.push_back({name, "n/a", reason, ""});
  return table_text(rows);
}

std::string sample_line(const Json& sample, const MachineSeries& series) {
  std::string line;
  auto say = [&](const std::string& name, const std::string& value) {
    if (name == "t_s" || name.ends_with("_used_bytes")) return;
    if (name.starts_with("run.")) return;  // its own line says them
    std::string shown = name;
    if (shown.ends_with("_percent")) shown.resize(shown.size() - 8);
    if (shown.ends_with("_bytes_s")) shown.resize(shown.size() - 8);
    line += (line.empty() ? "" : "  ") + shown + " " + value;
  };
  for (const auto& [name, value] : sample.object())
    say(name, shown_value(name, value.number()));
  for (const auto& [name, reason] : series.not_known()) say(name, "n/a");
  return line + "\n";
}

std::string summary_of_machine(const Json& json) {
  std::vector<std::vector<std::string>> rows = {
      {"", "mean", "min", "max", "p95"}};
  for (const auto& [name, metric] : json.find("metrics")->object()) {
    rows.push_back({name});
    for (const char* key : {"mean", "min", "max", "p95"})
      rows.back().push_back(shown_value(name, metric.find(key)->number()));
  }
  for (const auto& [name, reason] : json.find("not_known")->object())
    rows.push_back({name, "n/a", "n/a", "n/a", "n/a"});
  std::string text = table_text(rows);
  for (const auto& [reason, names] : by_reason(json)) {
    text += "n/a because " + reason + ":";
    for (const std::string& name : names) text += " " + name;
    text += "\n";
  }
  if (const Json& process = *json.find("process"); !process.is_null()) {
    text += "\nthreads of " + printable(process.find("name")->string()) +
            " that used processors most:\n";
    std::vector<std::vector<std::string>> threads = {{"thread", "name", "CPU"}};
    for (const Json& thread : process.find("threads")->array())
      threads.push_back(
          {thread.find("tid")->dump(), printable(thread.find("name")->string()),
           shown_value("_percent", thread.find("cpu_percent")->number())});
    text += table_text(threads);
  }
  if (const Json& why = *json.find("no_gpu"); !why.is_null())
    text += "\nGPU n/a: " + why.string() + "\n";
  if (std::get<bool>(json.find("synthetic_gpu")->value()))
    text += "\nthe GPU is simulated: its numbers mean nothing\n";
  text += "\n";
  for (const Json& finding : json.find("assessment")->array())
    text += finding.find("finding")->string() + ": " +
            finding.find("because")->string() + "\n";
  return text;
}

std::string comparison_of(const Json& changes) {
  std::vector<std::vector<std::string>> rows = {{"", "before", "after"}};
  for (const auto& [name, change] : changes.object())
    rows.push_back({name, shown_value(name, change.find("before")->number()),
                    shown_value(name, change.find("after")->number())});
  return "\n" + table_text(rows);
}

/// A run's report has other "metrics".
bool is_summary(const Json& json) {
  const Json* metrics = json.is_object() ? json.find("metrics") : nullptr;
  if (metrics == nullptr || !metrics->is_object()) return false;
  return std::ranges::all_of(metrics->object(), [](const auto& metric) {
    return number_in(metric.second, {"mean"}).has_value();
  });
}

Json read_summary(const std::string& file) {
  Json json = Json::parse(
      read_user_file(file, "cannot read the numbers to compare with"), file);
  if (is_summary(json)) return json;
  throw Error(ErrorKind::request,
              {.code = "monitor.compare",
               .what = "cannot compare with an earlier summary",
               .where = file,
               .why = "the file is not a summary of 'penstock monitor'",
               .next = "write one with 'penstock monitor --output FILE'"});
}

/// Before anything is measured for it.
void check_output(const std::string& file) {
  std::error_code none;
  if (std::filesystem::is_other(file, none)) return;  // /dev/stdout
  const std::filesystem::path folder =
      std::filesystem::absolute(file).parent_path();
  if (std::filesystem::is_directory(folder, none) &&
      !std::filesystem::is_directory(file, none) &&
      ::access(folder.c_str(), W_OK) == 0)
    return;
  throw Error(ErrorKind::request,
              {.code = "file.write",
               .what = "cannot write the summary",
               .where = file,
               .why = std::filesystem::is_directory(file, none)
                          ? "it is a folder"
                          : folder.string() +
                                " is not a folder that this user may write to",
               .next = "name a file in an existing folder"});
}

bool stopped(const Invocation& invocation) {
  return invocation.stop != nullptr && invocation.stop->load();
}

/// Waits in pieces, so that a signal is heard.
void wait_until(Nanoseconds end, const Invocation& invocation) {
  while (wall_clock().now() < end && !stopped(invocation))
    wall_clock().sleep_until(
        std::min(end, wall_clock().now() + from_seconds(0.1)));
}

/// The run's own line before the machine's.
std::string run_line(const LiveRun& run) {
  const std::string verdict = printable(run.verdict());
  return run.line() + (verdict.empty() ? "" : " | " + verdict) + "\n";
}

/// Whether it may have Python's lock, by what it has mapped.
bool may_run_python(int process) {
  const std::string maps =
      kernel_text("/proc/" + std::to_string(process) + "/maps");
  return maps.empty() || maps.find("python") != maps.npos;
}

std::optional<pid_t> process_of(const MonitorArguments& arguments,
                                const std::optional<LiveRun>& run) {
  if (arguments.pid > 0) return arguments.pid;
  return run ? run->process() : std::nullopt;
}

/// What is known beside the machine's numbers.
Json findings_of(const std::optional<LiveRun>& run,
                 const std::optional<InterpreterLock>& lock) {
  Json findings{Json::Array{}};
  auto add = [&](const char* finding, std::string because) {
    Json entry;
    entry["finding"] = finding;
    entry["because"] = std::move(because);
    findings.push_back(std::move(entry));
  };
  if (run && !run->verdict().empty())
    add("from the run", printable(run->verdict()));
  if (lock && lock->limits())
    add("Python's global interpreter lock (GIL) limits the process",
        formatted("a thread held it in %.0f %% of the samples",
                  100 * lock->json().find("held")->number()));
  return findings;
}

void show_summary(const Json& summary, const std::optional<LiveRun>& run,
                  const std::optional<InterpreterLock>& lock, bool lives,
                  const Invocation& invocation) {
  if (invocation.json) return print_document(summary);
  print("\n" + summary_of_machine(summary));
  if (!lives && !run) print("the process has ended\n");
  if (run && run->ended())
    print("the run has ended. " + printable(run->verdict()) +
          "\npenstock explain " + run->folder().string() + " shows more\n");
  if (lock) print(lock->text());
  if (const Json* changes = summary.find("compared"))
    print(comparison_of(*changes));
}

// Samples are due at began + n * interval, not an interval after the last one,
// so that the time a sample takes does not accumulate.
void run_monitor(const MonitorArguments& arguments, Invocation& invocation) {
  if (!arguments.output.empty()) check_output(arguments.output);
  std::optional<LiveRun> run;
  if (!arguments.run.empty()) run.emplace(arguments.run);
  Json before;
  if (!arguments.compare.empty()) before = read_summary(arguments.compare);
  MachineSeries series(
      {.process = process_of(arguments, run), .gpus = arguments.gpus});
  std::optional<InterpreterLock> lock;
  if (arguments.pid > 0 && may_run_python(arguments.pid))
    lock.emplace(arguments.pid);
  const bool screen = !invocation.json && ::isatty(STDOUT_FILENO) == 1;
  Screen drawn;
  const Nanoseconds began = wall_clock().now();
  for (std::int64_t n = 1;
       !stopped(invocation) && series.process_lives() && !(run && run->ended());
       ++n) {
    const double at = static_cast<double>(n) * arguments.interval;
    const bool last = arguments.duration > 0 && at >= arguments.duration;
    wait_until(began + from_seconds(last ? arguments.duration : at),
               invocation);
    if (run) run->look();
    const Json sample = series.sample(
        run ? run->numbers() : std::vector<std::pair<std::string, double>>());
    if (lock) lock->look();
    const std::string of_run = run ? run_line(*run) : "";
    if (screen)
      print_as_is(drawn.over(of_run + table_of(sample, series),
                             terminal_size(STDOUT_FILENO)));
    else if (!invocation.json)
      print(of_run + sample_line(sample, series));
    if (last) break;
  }
  if (run) run->look();  // its process may have ended with its report
  Json summary = series.summary(findings_of(run, lock));
  if (run) summary["run"] = run->json();
  if (lock) summary["interpreter_lock"] = lock->json();
  if (!before.is_null())
    summary["compared"] = compare_summaries(before, summary);
  // Where the file cannot be written, what was measured is shown all the same.
  show_summary(summary, run, lock, series.process_lives(), invocation);
  if (!arguments.output.empty())
    real_files().write_atomic(arguments.output, summary.dump(1) + "\n");
}

RunVerb add_monitor(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<MonitorArguments>();
  options.add("run", arguments->run,
              "Folder of a running run: show its progress, AU and bottleneck",
              {});
  options.add(
      "--duration", arguments->duration,
      "Seconds to watch. 0: until Ctrl-C, or until the process or run ends",
      {.least = 0, .most = 1e7});
  options.add("--interval", arguments->interval, "Seconds between samples",
              {.least = 0.05, .most = 3600});
  options.add("--pid", arguments->pid, "Process to watch, with its threads",
              {.least = 0});
  options.add("--gpus", arguments->gpus, "Numbers of the GPUs to watch",
              {.one_of = {"auto", "synthetic", "none"}});
  options.add("--output", arguments->output, "Write the summary to this file");
  options.add("--compare", arguments->compare,
              "Compare with this earlier file of --output");
  add_json(options, invocation, "Print the summary as one JSON document");
  return [arguments](Invocation& of) { run_monitor(*arguments, of); };
}

}  // namespace

Verb monitor_verb() {
  return {.name = "monitor",
          .help = "Watch GPUs, processors, memory, drives, a process or a run",
          .example = "penstock monitor --duration 30 --pid 4711",
          .ends_in_order = true,
          .add = add_monitor};
}

}  // namespace penstock
