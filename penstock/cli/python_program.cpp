#include "penstock/cli/python_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {
namespace {

// What the package says of itself, between marks: Python may say more.
constexpr const char* kMark = "penstock-version:";
constexpr const char* kAsk =
    "import penstock; print('penstock-version:' + penstock.__version__)";

struct Answer {
  int failed = 0;  ///< why it could not be started: an errno
  std::string said;
};

/// What a program writes to both its outputs, once it has ended.
Answer answer_of(const std::vector<std::string>& command) {
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
  Answer answer;
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
  while (answer.failed == 0 && ::waitpid(child, nullptr, 0) < 0 &&
         errno == EINTR) {
  }
  return answer;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

[[noreturn]] void refuse(const std::string& python, std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "cli.python",
       .what = "cannot train a model of your own",
       .where = python,
       .why = std::move(why),
       .next = "install the package penstock " PENSTOCK_VERSION
               " there (pip install ., or a wheel) beside torch, or name "
               "another Python with PENSTOCK_PYTHON"});
}

void check_package(const std::string& python) {
  const Answer answer = answer_of({python, "-c", kAsk});
  if (answer.failed != 0) refuse(python, std::strerror(answer.failed));
  const std::size_t at = answer.said.find(kMark);
  if (at == answer.said.npos)
    refuse(python, "it does not import penstock: " + last_line(answer.said));
  std::string version = answer.said.substr(at + std::strlen(kMark));
  version = version.substr(0, version.find('\n'));
  if (version != PENSTOCK_VERSION)
    refuse(python, "it has penstock " + version + ", this program is " +
                       PENSTOCK_VERSION);
}

}  // namespace

void become_python(const std::string& module, const std::string& argument) {
  const char* named = std::getenv("PENSTOCK_PYTHON");
  const std::string python =
      named != nullptr && *named != '\0' ? named : "python3";
  check_package(python);
  ::execlp(python.c_str(), python.c_str(), "-m", module.c_str(),
           argument.c_str(), static_cast<char*>(nullptr));
  refuse(python, std::strerror(errno));
}

}  // namespace penstock
