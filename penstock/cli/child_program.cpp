#include "penstock/cli/child_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace penstock {

// posix_spawn and not fork: this process has threads. The answer is read to its
// end before the child is waited for, since a child that fills the pipe waits
// for its reader and would never exit. The parent closes its copy of the
// writing end at once; as long as it had one, read() would see no end.
ProgramAnswer answer_of_program(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {.failed = errno};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  ProgramAnswer answer;
  answer.failed = ::posix_spawnp(&child, words[0], &actions, nullptr,
                                 words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::array<char, 4096> piece{};
  for (ssize_t got = 1; answer.failed == 0 && got != 0;) {
    got = ::read(ends[0], piece.data(), piece.size());
    if (got > 0)
      answer.said.append(piece.data(), static_cast<std::size_t>(got));
    else if (got < 0 && errno != EINTR)
      break;
  }
  ::close(ends[0]);
  int status = 0;
  while (answer.failed == 0 && ::waitpid(child, &status, 0) < 0 &&
         errno == EINTR) {
  }
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace penstock
