// The command line: reads arguments, calls the rooms, prints. No logic.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/secret.h"
#include "penstock/cli/signals.h"
#include "penstock/cli/verbs.h"

namespace {

// Known before the arguments are, so that even their errors are documents.
bool wants_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* argument) {
    return std::string_view(argument) == "--json";
  });
}

/// What is wrong with the arguments, without those that may hold a password: a
/// source that stands where none belongs.
std::string shown_reason(std::string why, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view hidden = argv[i];
    bool pairs = hidden.find('=') != hidden.npos &&
                 hidden.find_first_of(" \t\n") != hidden.npos;
    if (!pairs && hidden.find_first_of(":@") == hidden.npos) continue;
    for (std::size_t at = 0; (at = why.find(hidden, at)) != why.npos; at += 3)
      why.replace(at, hidden.size(), "***");
  }
  return penstock::without_password(why);
}

penstock::Error argument_error(const CLI::App& app, int argc, char** argv,
                               const CLI::ParseError& error) {
  using namespace penstock;
  ErrorParts parts{.code = "cli.arguments",
                   .what = "cannot read the command line",
                   .where = "the arguments",
                   .why = error.what(),
                   .next = "see penstock --help"};
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({}))
    names.push_back(verb->get_name());
  std::string first = argc > 1 ? argv[1] : "-";
  if (!first.starts_with('-') && std::ranges::find(names, first) == names.end())
    parts.why =
        "there is no verb '" + first + "'; " + did_you_mean(first, names);
  parts.why = shown_reason(std::move(parts.why), argc, argv);
  return Error(ErrorKind::request, std::move(parts));
}

void choose_log_level(const std::string& option) {
  using namespace penstock;
  LogLevel level{};
  const char* variable = std::getenv("PENSTOCK_LOG");
  if (variable != nullptr && !log_level_from(variable, level))
    log(LogLevel::warning,
        "PENSTOCK_LOG is '" + std::string(variable) +
            "', expected debug, info, warning, error or off");
  if (option.empty()) return;
  if (!log_level_from(option, level))
    throw Error(ErrorKind::request,
                {.code = "cli.log",
                 .what = "cannot use the log level '" + option + "'",
                 .where = "--log",
                 .why = "there is no such level",
                 .next = "use debug, info, warning, error or off"});
  set_log_level(level);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace penstock;
  CLI::App app{
      "Penstock keeps a GPU busy: reads, prepares and feeds training data, and "
      "says what limits.",
      "penstock"};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  penstock demo positions --rows 4030 --seed 1 --to sqlite:demo.sqlite\n"
      "  penstock peek sqlite:demo.sqlite#measurements\n"
      "  penstock train examples/positions/job.json --set "
      "source.path=demo.sqlite\n"
      "  penstock batch job.json --epoch 4 --steps 10:12 --out batches\n"
      "Exit codes: 0 done (or help shown), 2 request, 3 source, 4 transform, 5 "
      "device, 6 out of memory, 70 internal, 128 + a signal's number "
      "interrupted (130 by Ctrl-C, 143 by SIGTERM; state saved).");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  std::string level;
  app.add_option("--log", level,
                 "debug, info, warning, error or off (or PENSTOCK_LOG)");

  app.option_defaults()->always_capture_default();

  Verbs verbs{.stop = &stop_requested(),
              .save = &save_requested(),
              .json = wants_json(argc, argv)};
  add_verbs(app, verbs);
  try {
    if (argc == 1) throw CLI::CallForHelp();
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return report_error(argument_error(app, argc, argv, error), verbs.json);
  }
  watch_signals(verbs.ends_in_order);
  try {
    choose_log_level(level);
    verbs.run();
  } catch (const OutputClosed&) {
    // As if SIGPIPE had ended us, which would have left work unsaved.
    return 128 + (verbs.interrupted ? stop_signal() : SIGPIPE);
  } catch (const Error& error) {
    return report_error(error, verbs.json);
  } catch (const std::bad_alloc&) {
    return report_error(
        Error(ErrorKind::out_of_memory,
              {.code = "memory.host",
               .what = "the host has no memory left",
               .where = "this process",
               .why = "the system gave no more of it",
               .next = "set \"loader.cache\" to \"none\", or give the job "
                       "more memory"}),
        verbs.json);
  } catch (const std::exception& error) {
    return report_error(
        Error(ErrorKind::internal, {.code = "internal.exception",
                                    .what = "it came to an end that nobody "
                                            "expected",
                                    .where = "the program",
                                    .why = error.what(),
                                    .next = "this is a bug in Penstock, please "
                                            "report it"}),
        verbs.json);
  }
  return verbs.interrupted ? 128 + stop_signal() : verbs.exit_code;
}
