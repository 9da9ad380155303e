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
#include "penstock/base/json_path.h"
#include "penstock/cli/child_program.h"

namespace penstock {
namespace {

// What the package says of itself, between marks: Python may say more.
constexpr const char* kMark = "penstock-version:";
constexpr const char* kAsk =
    "import penstock; print('penstock-version:' + penstock.__version__)";

/// What Python is for, and the package that it needs next to penstock.
struct Purpose {
  std::string what = "cannot train your own model";
  std::string beside = "torch";
};

[[noreturn]] void refuse(const Purpose& purpose, const std::string& python,
                         std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "cli.python",
       .what = purpose.what,
       .where = python,
       .why = std::move(why),
       .next =
           "check that this Python starts and has penstock " PENSTOCK_VERSION
           " and " +
           purpose.beside + ", or name another Python with PENSTOCK_PYTHON"});
}

std::string not_started(int reason) {
  return std::string("Python cannot be started: ") + std::strerror(reason);
}

void check_package(const Purpose& purpose, const std::string& python) {
  const ProgramAnswer answer = answer_of_program({python, "-c", kAsk});
  if (answer.failed != 0) refuse(purpose, python, not_started(answer.failed));
  const std::size_t at = answer.said.find(kMark);
  if (at == answer.said.npos)
    refuse(purpose, python,
           "importing penstock fails: " + last_line(answer.said));
  std::string version = answer.said.substr(at + std::strlen(kMark));
  version = version.substr(0, version.find('\n'));
  if (version != PENSTOCK_VERSION)
    refuse(purpose, python,
           "found penstock " + version + ", expected " + PENSTOCK_VERSION +
               ", as this program");
}

std::string python_with_package(const Purpose& purpose) {
  const char* named = std::getenv("PENSTOCK_PYTHON");
  std::string python = named != nullptr && *named != '\0' ? named : "python3";
  check_package(purpose, python);
  return python;
}

/// The error in {"error": {...}} on the last line of what Python said.
[[noreturn]] void throw_answer(const std::string& python,
                               const std::string& said) {
  const std::string line = last_line(said);
  Json answer;
  try {
    answer = Json::parse(line, python);
  } catch (const Error&) {
    refuse(Purpose{}, python, line);
  }
  auto part = [&](const char* key) { return text_in(answer, {"error", key}); };
  throw Error(ErrorKind::request, {.code = part("code"),
                                   .what = part("what"),
                                   .where = part("where"),
                                   .why = part("why"),
                                   .next = part("next")});
}

}  // namespace

void check_with_python(const std::string& module, Json request) {
  const Purpose purpose;
  const std::string python = python_with_package(purpose);
  request["check"] = true;
  request["json"] = true;
  const ProgramAnswer answer =
      answer_of_program({python, "-m", module, request.dump()});
  if (answer.failed != 0) refuse(purpose, python, not_started(answer.failed));
  if (answer.exit_code != 0) throw_answer(python, answer.said);
}

// exec and not a child: signals, the terminal and the exit code are then those
// of Python itself, and nothing must be passed on.
void become_python(const std::string& module, const std::string& argument,
                   const std::string& what, const std::string& beside) {
  const Purpose purpose{what, beside};
  const std::string python = python_with_package(purpose);
  ::execlp(python.c_str(), python.c_str(), "-m", module.c_str(),
           argument.c_str(), static_cast<char*>(nullptr));
  refuse(purpose, python, not_started(errno));
}

}  // namespace penstock
