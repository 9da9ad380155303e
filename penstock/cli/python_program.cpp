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
#include "penstock/cli/child_program.h"

namespace penstock {
namespace {

// What the package says of itself, between marks: Python may say more.
constexpr const char* kMark = "penstock-version:";
constexpr const char* kAsk =
    "import penstock; print('penstock-version:' + penstock.__version__)";

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
  const ProgramAnswer answer = answer_of_program({python, "-c", kAsk});
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
