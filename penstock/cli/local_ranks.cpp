#include "penstock/cli/local_ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "penstock/base/base.h"
#include "penstock/base/printable.h"
#include "penstock/cli/output.h"
#include "penstock/session/session.h"

// One process starts the others and waits for them; it takes no part in the
// training and needs no torch. It hears signals by waiting for them, so that
// each is passed on exactly once: the ranks are in process groups of their own,
// and a Ctrl-C of the terminal, or a signal to the group of the launcher, does
// not reach them a second time, which would end them at once.
namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kEndTogether = std::chrono::seconds(30);
constexpr long kShownBytes = 2000;  // of what a rank wrote last

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
constexpr int kSaves[] = {SIGUSR1, SIGUSR2};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void refuse_start(std::string where, int reason) {
  throw Error(ErrorKind::request,
              {.code = "ranks.start",
               .what = "cannot start the ranks",
               .where = std::move(where),
               .why = std::strerror(reason),
               .next = "start fewer ranks, or raise the limit on processes "
                       "(ulimit -u)"});
}

/// A port of 127.0.0.1 that the system gives to no other process while this
/// exists. Rank 0 can listen on it: a socket that is bound and does not listen
/// leaves the port free for one that sets SO_REUSEADDR, as rank 0 does.
class ReservedPort {
 public:
  ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 ||
        ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) !=
            0 ||
        ::bind(socket_, any, length) != 0 ||
        ::getsockname(socket_, any, &length) != 0)
      refuse_start("a port of 127.0.0.1", errno);
    number_ = ntohs(address.sin_port);
  }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  ~ReservedPort() { ::close(socket_); }
  int number() const { return number_; }

 private:
  const int socket_;
  int number_ = 0;
};

/// What the environment of a rank says of it.
std::vector<std::string> environment_of(int rank, int ranks,
                                        const std::string& port) {
  const std::pair<std::string, std::string> own[] = {
      {"RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(ranks)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", port},
      {kStartedBy, std::to_string(::getpid())}};
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool replaced = std::ranges::any_of(own, [&](const auto& one) {
      return text.starts_with(one.first + "=");
    });
    if (!replaced && !text.starts_with("TORCHELASTIC_")) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

sigset_t set_of_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kStops) ::sigaddset(&set, number);
  for (const int number : kSaves) ::sigaddset(&set, number);
  for (const int number : {SIGCHLD, SIGTSTP, SIGCONT})
    ::sigaddset(&set, number);
  return set;
}

/// A rank while it runs, and how it ended.
struct RankProcess {
  pid_t process = 0;
  std::optional<int> code;  ///< missing: it runs
  int signal = 0;           ///< that ended it
  File written;             ///< by another than rank 0
};

class RankProcesses {
 public:
  explicit RankProcesses(std::vector<std::string> command)
      : command_(std::move(command)), signals_(set_of_signals()) {
    ::sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses() {
    for (RankProcess& one : ranks_)
      if (!one.code) ::kill(one.process, SIGKILL), wait_for(one, 0);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  void start(int ranks) {
    const char* named = std::getenv("MASTER_PORT");
    const std::string port =
        named != nullptr ? named : std::to_string(port_.number());
    for (int rank = 0; rank < ranks; ++rank) start(rank, ranks, port);
  }
  /// Until all have ended.
  void wait() {
    std::optional<SteadyClock::time_point> killed_at;
    while (running()) {
      const timespec second{.tv_sec = 1, .tv_nsec = 0};
      const int number = ::sigtimedwait(&signals_, nullptr, &second);
      if (number > 0) pass_on(number);
      for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (!ranks_[i].code && wait_for(ranks_[i], WNOHANG)) note_end(i);
      if (!failed_) continue;
      if (!killed_at) killed_at = SteadyClock::now() + kEndTogether;
      if (SteadyClock::now() < *killed_at) continue;
      for (const RankProcess& one : ranks_)
        if (!one.code) ::kill(one.process, SIGKILL);
    }
  }

  const std::vector<RankProcess>& ranks() const { return ranks_; }
  /// The first that failed; missing: none did. One that ends since it was told
  /// to has not failed.
  std::optional<std::size_t> failed() const { return failed_; }
  int exit_code() const {
    if (failed_) return *ranks_[*failed_].code;
    for (const RankProcess& one : ranks_)
      if (*one.code != 0) return *one.code;
    return 0;
  }

 private:
  void start(int rank, int ranks, const std::string& port) {
    RankProcess one;
    if (rank != 0) {
      one.written.reset(std::tmpfile());
      if (one.written == nullptr) refuse_start("a temporary file", errno);
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    if (one.written != nullptr)
      for (const int output : {STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_adddup2(&actions,
                                           ::fileno(one.written.get()), output);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setsigmask(&attributes, &before_);
    std::vector<std::string> environment = environment_of(rank, ranks, port);
    const int failed =
        ::posix_spawn(&one.process, "/proc/self/exe", &actions, &attributes,
                      pointers(command_).data(), pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (failed != 0)
      refuse_start(
          "rank " + std::to_string(rank) + " of " + std::to_string(ranks),
          failed);
    ranks_.push_back(std::move(one));
  }

  bool running() const {
    return std::ranges::any_of(
        ranks_, [](const RankProcess& one) { return !one.code; });
  }

  /// Whether it has ended.
  static bool wait_for(RankProcess& one, int how) {
    int status = 0;
    pid_t found = 0;
    while ((found = ::waitpid(one.process, &status, how)) < 0 && errno == EINTR)
      ;
    if (found == 0) return false;
    one.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    one.code = one.signal != 0 ? 128 + one.signal : WEXITSTATUS(status);
    return true;
  }

  void note_end(std::size_t rank) {
    const RankProcess& one = ranks_[rank];
    const bool told = stopped_ && one.signal == 0 && *one.code > 128;
    if (*one.code != 0 && !told && !failed_) failed_ = rank;
  }

  void pass_on(int number) {
    if (number == SIGCHLD) return;
    stopped_ |= std::ranges::find(kStops, number) != std::end(kStops);
    const bool saves = std::ranges::find(kSaves, number) != std::end(kSaves);
    const int passed = number == SIGTSTP ? SIGSTOP : number;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (!ranks_[i].code && (i == 0 || !saves))
        ::kill(ranks_[i].process, passed);
    if (number == SIGTSTP) ::raise(SIGSTOP);
  }

  std::vector<std::string> command_;
  const sigset_t signals_;
  sigset_t before_{};
  const ReservedPort port_;
  std::vector<RankProcess> ranks_;
  std::optional<std::size_t> failed_;
  bool stopped_ = false;
};

/// The last lines that a rank wrote.
std::string end_of(std::FILE* file) {
  std::fseek(file, 0, SEEK_END);
  const long length = std::ftell(file);
  const long begin = std::max(0L, length - kShownBytes);
  std::string text(static_cast<std::size_t>(std::max(0L, length - begin)),
                   '\0');
  std::fseek(file, begin, SEEK_SET);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  if (begin > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

std::string ending_of(const RankProcess& one) {
  return one.signal != 0 ? "was ended by signal " + std::to_string(one.signal) +
                               " (" + ::strsignal(one.signal) + ")"
                         : "ended with exit code " + std::to_string(*one.code);
}

}  // namespace

std::vector<std::string> command_of_rank(
    const std::vector<std::string>& command) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--ranks")
      ++i;  // and its value
    else if (!command[i].starts_with("--ranks="))
      kept.push_back(command[i]);
  }
  return kept;
}

bool names_ranks(const std::vector<std::string>& command) {
  return command_of_rank(command).size() < command.size();
}

void check_no_rank() {
  auto refuse = [](std::string why, std::string next) {
    throw Error(ErrorKind::request, {.code = "cli.arguments",
                                     .what = "cannot start the ranks",
                                     .where = "--ranks",
                                     .why = std::move(why),
                                     .next = std::move(next)});
  };
  for (const char* name : {"WORLD_SIZE", "RANK"})
    if (const char* value = std::getenv(name))
      refuse("the environment has " + std::string(name) + "=" + value +
                 ": this process has been started as one of several ranks",
             "leave out --ranks where torchrun, srun or mpirun starts the "
             "ranks, or unset " +
                 std::string(name));
  if (const std::optional<RankPlace> place = rank_place())
    refuse("this process is rank " + std::to_string(place->rank.rank) + " of " +
               std::to_string(place->rank.world) + ", started by " +
               place->launcher,
           "leave out --ranks: the launcher starts the ranks");
}

int run_as_ranks(const std::vector<std::string>& command, int ranks,
                 bool json) {
  RankProcesses processes(command_of_rank(command));
  processes.start(ranks);
  processes.wait();
  const std::optional<std::size_t> failed = processes.failed();
  if (failed && *failed > 0) {
    const RankProcess& one = processes.ranks()[*failed];
    std::fprintf(stderr, "penstock: rank %zu %s; it wrote last:\n%s", *failed,
                 ending_of(one).c_str(),
                 printable_lines(end_of(one.written.get())).c_str());
  }
  // Rank 0 has shown its error itself, unless a signal ended it.
  if (const RankProcess& first = processes.ranks()[0]; first.signal != 0)
    report_error(
        Error(ErrorKind::device,
              {.code = "ranks.lost",
               .what = "the training was not finished",
               .where = "rank 0",
               .why = "the process of rank 0 " + ending_of(first),
               .next =
                   "look for what ended the process (SIGKILL often means that "
                   "memory ran out); then add --resume latest --or-begin "
                   "to continue from the last checkpoint"}),
        json);
  return processes.exit_code();
}

void end_with_launcher() {
  const char* launcher = std::getenv(kStartedBy);
  if (launcher == nullptr) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have ended before that.
  if (std::to_string(::getppid()) != launcher) ::raise(SIGTERM);
}

}  // namespace penstock
