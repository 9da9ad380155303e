// The command line: reads arguments, calls the rooms, prints. No logic.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <iostream>

#include "penstock/frontends/cli/verbs.h"

namespace {

// Written by the signal handler alone, read by the loop over steps.
std::atomic<bool> stop_asked{false};
std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_signal(int number) {
  // The second time the user means it: end at once.
  if (stop_asked.exchange(true)) ::_exit(128 + number);
  stop_signal = number;
}

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace penstock;
  CLI::App app{
      "Penstock keeps a GPU busy: reads, prepares and feeds training data, and "
      "says what limits."};
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  penstock demo positions --rows 4030 --seed 1 --to sqlite:demo.sqlite\n"
      "  penstock peek sqlite:demo.sqlite#measurements\n"
      "  penstock train examples/positions/job.json --set train.epochs=3\n"
      "  penstock batch job.json --epoch 4 --steps 10:12 --out batches\n"
      "Exit codes: 0 done, 2 request, 3 source, 4 transform, 5 device, 6 out "
      "of memory, 70 internal, 130 and 143 interrupted (state saved).");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  std::string level;
  app.add_option("--log", level,
                 "debug, info, warning, error or off (or PENSTOCK_LOG)");

  Verbs verbs{.stop = &stop_asked};
  add_verbs(app, verbs);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return report_error(
        Error(ErrorKind::request, {.code = "cli.arguments",
                                   .what = "cannot read the command line",
                                   .why = error.what(),
                                   .next = "see penstock --help"}),
        verbs.json);
  }
  watch_signals();
  try {
    LogLevel wanted{};
    if (!level.empty()) {
      if (!log_level_from(level, wanted))
        throw Error(ErrorKind::request,
                    {.code = "cli.log",
                     .what = "cannot use --log " + level,
                     .why = "expected debug, info, warning, error or off"});
      set_log_level(wanted);
    }
    verbs.run();
  } catch (const Error& error) {
    return report_error(error, verbs.json);
  } catch (const std::bad_alloc&) {
    return report_error(
        Error(ErrorKind::out_of_memory,
              {.code = "memory.host",
               .what = "the host has no memory left",
               .next = "set \"loader.cache\" to \"none\", or give the job "
                       "more memory"}),
        verbs.json);
  } catch (const std::exception& error) {
    return report_error(
        Error(ErrorKind::internal, {.code = "internal.exception",
                                    .what = error.what(),
                                    .next = "this is a bug in Penstock, please "
                                            "report it"}),
        verbs.json);
  }
  return verbs.interrupted ? 128 + stop_signal.load() : 0;
}
