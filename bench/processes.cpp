#include "bench/processes.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "penstock/base/error.h"

namespace penstock {
namespace {

struct Child {
  pid_t process;
  int result;  // to be read from
};

Child start(int number, const std::function<Json(int)>& act) {
  int ends[2];
  PENSTOCK_ASSERT(::pipe(ends) == 0, "a pipe opens");
  pid_t process = ::fork();
  PENSTOCK_ASSERT(process >= 0, "a process starts");
  if (process > 0) {
    ::close(ends[1]);
    return {process, ends[0]};
  }
  std::string text = act(number).dump();
  bool sent = ::write(ends[1], text.data(), text.size()) ==
              static_cast<ssize_t>(text.size());
  std::_Exit(sent ? 0 : 1);
}

Json result_of(const Child& child) {
  std::string text;
  char part[4096];
  for (ssize_t got; (got = ::read(child.result, part, sizeof(part))) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  ::close(child.result);
  int status = 0;
  ::waitpid(child.process, &status, 0);
  PENSTOCK_ASSERT(status == 0, "a process ends well");
  return Json::parse(text, "the result of a process");
}

}  // namespace

std::vector<Json> in_processes(int count, const std::function<Json(int)>& act) {
  std::vector<Child> children;
  for (int i = 0; i < count; ++i) children.push_back(start(i, act));
  std::vector<Json> results;
  for (const Child& child : children) results.push_back(result_of(child));
  return results;
}

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace penstock
