// The command line: reads arguments, calls the rooms, prints. No logic.
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>

#include "build_name.h"
#include "penstock/base/base.h"
#include "penstock/cli/command_line.h"
#include "penstock/cli/output.h"
#include "penstock/cli/signals.h"
#include "penstock/monitor/monitor.h"

namespace penstock {
namespace {

void choose_log_level(const std::string& option) {
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
                 .why = "unknown level",
                 .next = "use debug, info, warning, error or off"});
  set_log_level(level);
  ::setenv("PENSTOCK_LOG", option.c_str(), 1);  // for who takes over
}

bool is_limited(decltype(RLIMIT_AS) what) {
  rlimit limit = {};
  return ::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// Each heap of a thread's own reserves 64 MiB of addresses, which a limit on
/// them counts: some threads would leave none. What was large and is freed
/// stays with a heap, up to 64 MiB again, unless it was mapped by itself; a
/// limit on data counts that, too.
void hold_little_where_it_is_limited() {
  constexpr int kMapped = 256 << 10;
  if (is_limited(RLIMIT_AS)) ::mallopt(M_ARENA_MAX, 1);
  if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA))
    ::mallopt(M_MMAP_THRESHOLD, kMapped);
}

/// Threads of OpenMP that wait for one another keep their processors, which
/// those of the loader, or of other programs, then lack: a step of a small
/// model takes ten times as long. It is read when libtorch is loaded.
void let_openmp_sleep() {
  if (std::getenv("GOMP_SPINCOUNT") == nullptr)
    ::setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
}

/// The signal that ended the run. None came to this process where another rank
/// got it: then as if it had been SIGTERM, which launchers send.
int ending_signal() { return stop_signal() != 0 ? stop_signal() : SIGTERM; }

int run_program(int argc, char** argv, Invocation& invocation) {
  std::optional<Command> command = read_command_line(argc, argv, invocation);
  if (!command) return 0;
  hold_little_where_it_is_limited();
  let_openmp_sleep();
  watch_signals(command->verb->ends_in_order);
  choose_log_level(command->log_level);
  const auto nvtx = tell_nvtx_where_asked();
  command->run(invocation);
  return invocation.interrupted ? 128 + ending_signal() : invocation.exit_code;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  Invocation invocation{.stop = &stop_requested(),
                        .save = &save_requested(),
                        .json = wants_json(argc, argv)};
  try {
    check_core("the program", PENSTOCK_BUILD_NAME);
    invocation.command = {argv, argv + argc};
    return run_program(argc, argv, invocation);
  } catch (const OutputClosed&) {
    // The exit code of a program that SIGPIPE ended; SIGPIPE itself would have
    // left work unsaved.
    return 128 + (invocation.interrupted ? ending_signal() : SIGPIPE);
  } catch (...) {
    return report_exception(invocation.json);
  }
}
