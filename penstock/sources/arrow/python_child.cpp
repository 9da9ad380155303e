#include "penstock/sources/arrow/python_child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/base/json_path.h"
#include "penstock/base/plugin_build.h"
#include "penstock/sources/arrow/ipc_stream.h"
#include "penstock/sources/arrow/scanner.h"
#include "penstock/sources/process_state.h"

namespace penstock::arrow_files {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Without the current folder, which may hold a file of a module's name.
constexpr const char* kRun =
    "import sys; sys.path[:] = [one for one in sys.path if one]; "
    "from penstock._rows import arrow_child; arrow_child.main()";
constexpr const char* kInstall =
    "install penstock and pyarrow for one Python (pip install "
    "'penstock[arrow]'), and name it with PENSTOCK_PYTHON where it is not the "
    "first python3 on the PATH";
constexpr int kPipe = 1 << 20;  // bytes that wait in it

struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    // Ctrl-C is for this program alone, and no signal is blocked.
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
};

std::string end_in_words(int status) {
  if (WIFEXITED(status))
    return "ended with status " + std::to_string(WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return std::string("was ended by ") +
         (name == nullptr ? "a signal" : "SIG" + std::string(name));
}

bool flag_in(const Json& of, const char* name) {
  const Json* found = of.find(name);
  return found != nullptr && found->value() == Json::Value(true);
}

}  // namespace

PythonChild::PythonChild(std::string python, std::chrono::milliseconds silence)
    : python_(std::move(python)), silence_(silence) {
  try {
    start();
    greet();
  } catch (...) {
    end();
    throw;
  }
}

PythonChild::~PythonChild() { end(); }

void PythonChild::end() {
  for (int* end : {&to_, &from_, &errors_})
    if (*end >= 0) ::close(std::exchange(*end, -1));
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
}

void PythonChild::refuse(std::string why, std::string next) const {
  throw Error(ErrorKind::source, {.code = "source.pyarrow",
                                  .what = "cannot read with pyarrow",
                                  .where = python_,
                                  .why = std::move(why),
                                  .next = std::move(next)});
}

void PythonChild::start() {
  std::array<int, 2> to{-1, -1}, from{-1, -1};
  errors_ = ::memfd_create("penstock-arrow-child", MFD_CLOEXEC);
  if (errors_ < 0 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to.data()) != 0 ||
      ::pipe2(from.data(), O_CLOEXEC) != 0) {
    const int failed = errno;
    for (int end : to)
      if (end >= 0) ::close(end);
    refuse(std::string("Python cannot be started: ") + std::strerror(failed),
           "raise the limit of open files (ulimit -n)");
  }
  ::fcntl(from[1], F_SETPIPE_SZ, kPipe);  // a smaller one is slower
  SpawnSettings settings;
  ::posix_spawn_file_actions_adddup2(&settings.files, to[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.files, from[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.files, errors_, STDERR_FILENO);
  std::array<std::string, 3> words{python_, "-c", kRun};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(),
                                 words[2].data(), nullptr};
  const int failed =
      ::posix_spawnp(&process_, python_.c_str(), &settings.files,
                     &settings.attributes, arguments.data(), environ);
  to_ = to[0];
  from_ = from[0];
  ::close(to[1]);
  ::close(from[1]);
  if (failed != 0) {
    process_ = 0;
    refuse(std::string("Python cannot be started: ") + std::strerror(failed),
           kInstall);
  }
}

void PythonChild::greet() {
  const Json said = answer();
  if (const Json* error = said.find("error"); error != nullptr)
    throw Error(ErrorKind::source, {.code = text_in(*error, {"code"}),
                                    .what = text_in(*error, {"what"}),
                                    .where = python_,
                                    .why = text_in(*error, {"why"}),
                                    .next = text_in(*error, {"next"})});
  const std::string version = text_in(said, {"penstock"});
  if (!own_build().starts_with(version + " "))
    refuse("found penstock " + version + ", expected " +
               std::string(own_build()) + ", as this program",
           kInstall);
  pyarrow_ = text_in(said, {"pyarrow"});
}

void PythonChild::send(const Json& request) {
  const std::string line = request.dump() + "\n";
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t sent =
        ::send(to_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) ended();
    at += static_cast<std::size_t>(sent);
  }
}

Json PythonChild::answer() {
  constexpr std::uint32_t kMost = 1U << 30;
  std::uint32_t size = 0;
  read(&size, sizeof(size));
  if (size > kMost)
    refuse(
        "the answer of this Python is not one of penstock: it is longer than 1 "
        "GiB",
        kInstall);
  std::string text(size, '\0');
  read(text.data(), text.size());
  Json said = Json::parse(text, python_);
  if (const std::string failed = text_in(said, {"failed"}); !failed.empty())
    refuse(failed, "report this error, and attach the file that was read");
  const Json* refused = said.find("refused");
  if (refused == nullptr) return said;
  throw ScanFailure{.says = text_in(*refused, {"says"}),
                    .where = text_in(*refused, {"where"}),
                    .next = text_in(*refused, {"next"}),
                    .no_memory = flag_in(*refused, "no_memory"),
                    .unsupported = flag_in(*refused, "unsupported"),
                    .of_store = flag_in(*refused, "of_store")};
}

/// False: it neither answers nor computes.
bool PythonChild::wait_for_bytes() const {
  constexpr int kLookMs = 200;
  constexpr double kComputes = 0.01;  // seconds
  SteadyClock::time_point since = SteadyClock::now();
  double computed = state_of_process(process_).seconds;
  for (;;) {
    pollfd wait{.fd = from_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, kLookMs);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // read() says why
    if (SteadyClock::now() - since < silence_) continue;
    const double now = state_of_process(process_).seconds;
    if (now - computed < kComputes) return false;
    computed = now;
    since = SteadyClock::now();
  }
}

void PythonChild::read(void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    if (!wait_for_bytes())
      refuse("this Python has neither answered nor computed for " +
                 std::to_string(silence_.count() / 1000) + " seconds",
             "check the disk or the store that holds the file, and try again");
    const ssize_t got = ::read(from_, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ended();
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::shared_ptr<const ArrowTable> PythonChild::read_rows() try {
  return read_ipc_stream(
      [this](void* to, std::size_t size) { read(to, size); });
} catch (const std::runtime_error& damaged) {
  refuse(std::string("the rows that it sends are damaged: ") + damaged.what(),
         kInstall);
} catch (const std::out_of_range& damaged) {
  refuse(std::string("the rows that it sends are damaged: ") + damaged.what(),
         kInstall);
}

void PythonChild::ended() {
  // It has closed its end, and so will be gone soon, or is ended.
  int status = 0;
  for (int left = 20; ::waitpid(process_, &status, WNOHANG) == 0; --left) {
    if (left == 0) ::kill(process_, SIGKILL);
    ::poll(nullptr, 0, 100);
  }
  process_ = 0;
  const std::string words = last_words();
  if (pyarrow_.empty() && WIFEXITED(status))
    throw Error(
        ErrorKind::source,
        {.code = "source.part_missing",
         .what = "cannot read with pyarrow",
         .where = python_,
         .why = words.empty() ? "that Python " + end_in_words(status) : words,
         .next = kInstall});
  refuse("the process that reads files " + end_in_words(status) +
             (words.empty() ? "" : ": " + words),
         "get an intact copy of the file, or free some memory, and try again");
}

/// The last line of what it wrote to its standard error.
std::string PythonChild::last_words() const {
  std::array<char, 4096> end{};
  const off_t size = ::lseek(errors_, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - std::ssize(end));
  const ssize_t got = ::pread(errors_, end.data(), end.size(), from);
  std::string text(end.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::vector<std::string> pythons_to_try() {
  const char* named = std::getenv("PENSTOCK_PYTHON");
  if (named != nullptr && *named != '\0') return {named};
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "" : variable;
  std::vector<std::string> found;
  std::set<std::filesystem::path> seen;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::filesystem::path python =
        std::filesystem::path(path.substr(at, end - at)) / "python3";
    at = end + 1;
    std::error_code unknown;
    if (python.is_absolute() && ::access(python.c_str(), X_OK) == 0 &&
        seen.insert(std::filesystem::absolute(python, unknown)).second)
      found.push_back(python);
  }
  if (found.empty()) found.push_back("python3");
  return found;
}

}  // namespace penstock::arrow_files
