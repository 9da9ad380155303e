#include "bench/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "bench/measure.h"

namespace penstock {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

// Starts the program with its output in a pipe, whose reading end it returns.
int start(const std::vector<std::string>& command, pid_t& child) {
  std::array<int, 2> ends{};
  PENSTOCK_ASSERT(::pipe2(ends.data(), O_CLOEXEC) == 0, "a pipe can be made");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failed = ::posix_spawn(&child, arguments[0], &actions, nullptr,
                             arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  PENSTOCK_ASSERT(failed == 0, "the program can be started");
  return ends[0];
}

}  // namespace

ChildRun run_child(const std::vector<std::string>& command) {
  ChildRun run;
  int status = 0;
  rusage use{};
  run.wall_seconds = wall_seconds([&] {
    pid_t child = 0;
    int output = start(command, child);
    std::array<char, 4096> piece{};
    for (ssize_t got; (got = ::read(output, piece.data(), piece.size())) > 0;)
      run.output.append(piece.data(), static_cast<std::size_t>(got));
    ::close(output);
    ::wait4(child, &status, 0, &use);
  });
  PENSTOCK_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "the program ends well; it said why on standard error");
  run.cpu_seconds = seconds(use.ru_utime) + seconds(use.ru_stime);
  run.peak_bytes = static_cast<std::size_t>(use.ru_maxrss) * 1024;
  return run;
}

std::string penstock_program() {
  std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  return (own.parent_path() / "penstock").string();
}

}  // namespace penstock
