#include "penstock/sources/hdf5/index_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/plugin.h"
#include "penstock/sources/process_state.h"

namespace penstock::hdf5 {
namespace {

constexpr const char* kProgram = "penstock_hdf5_index";
constexpr int kMostTries = 3;
constexpr std::chrono::milliseconds kLook(100);
constexpr double kMostSilentSeconds = 1.5;
constexpr double kMostWaitSeconds = 60;  // for a disk or a server of files
constexpr std::uint64_t kMostFrame =
    std::uint64_t{kMostChunks} * sizeof(ChunkPlace);

Error failed(const files::DataFile& file, std::string code, std::string why,
             std::string next) {
  return Error(ErrorKind::source, {.code = std::move(code),
                                   .what = "cannot read the HDF5 file",
                                   .where = file.path,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

// Why a process: libhdf5 serialises all calls by one global lock, and on
// damaged files it aborts, loops, or writes outside its buffers, none of which
// an exception can catch. So the engine never links it. The program reads the
// metadata once per file; afterwards readers use pread() and their own
// decoders, any number of threads at a time.
std::string program_path() {
  for (const std::filesystem::path& folder : plugin_folders())
    if (::access((folder / kProgram).c_str(), X_OK) == 0)
      return folder / kProgram;
  throw Error(
      ErrorKind::source,
      {.code = "hdf5.no_program",
       .what = "cannot read HDF5 files",
       .where = kProgram,
       .why = "this program, which belongs next to the plugin, is missing",
       .next = "reinstall Penstock"});
}

std::string shown_signal(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number)
                         : "SIG" + std::string(name);
}

struct FileActions {
  posix_spawn_file_actions_t actions;
  FileActions() { posix_spawn_file_actions_init(&actions); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
};

}  // namespace

IndexProcess::~IndexProcess() { end(); }

void IndexProcess::end() {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  to_ = from_ = -1;
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
}

// Sockets rather than pipes: MSG_NOSIGNAL then spares the host process, which
// is often Python, a SIGPIPE when the program has died. All four ends are
// opened with CLOEXEC, and only the two that are duplicated onto 0 and 1
// survive the exec. If the program inherited the others, it would not see the
// end of its input when this process closes it, and would stay behind.
void IndexProcess::start() {
  const std::string program = program_path();
  int to[2], from[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to) != 0 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, from) != 0)
    throw Error(
        ErrorKind::source,
        {.code = "hdf5.no_program",
         .what = "cannot start the program that reads the index of HDF5 files",
         .where = program,
         .why = std::strerror(errno),
         .next = "raise the limit of open files (ulimit -n)"});
  FileActions files;
  posix_spawn_file_actions_adddup2(&files.actions, to[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files.actions, from[1], STDOUT_FILENO);
  // Nothing of our environment changes what it does.
  std::array<char*, 1> environment{nullptr};
  std::string name = program;
  std::array<char*, 2> arguments{name.data(), nullptr};
  const int failed =
      ::posix_spawn(&process_, program.c_str(), &files.actions, nullptr,
                    arguments.data(), environment.data());
  ::close(to[1]);
  ::close(from[1]);
  to_ = to[0];
  from_ = from[0];
  if (failed == 0) return;
  process_ = 0;
  end();
  throw Error(
      ErrorKind::source,
      {.code = "hdf5.no_program",
       .what = "cannot start the program that reads the index of HDF5 files",
       .where = program,
       .why = std::strerror(failed),
       .next = "reinstall Penstock"});
}

// It is hung when it says nothing though it computes, or cannot run: a process
// that waits for a disk is given more time. Three signs, looked at only after
// 1.5 seconds of silence: it is stopped (state T); it has used half of that
// time as processor time since the silence began, so it computes without
// reading, as libhdf5 does in a cycle of B-tree nodes; or a minute has passed.
// A process in state D uses no processor time.
bool IndexProcess::wait_for_bytes() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const double computed = state_of_process(process_).seconds;
  for (;;) {
    end_if_stopped(stop_);
    pollfd wait{.fd = from_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(kLook.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    const double silent =
        std::chrono::duration<double>(Clock::now() - begin).count();
    if (silent < kMostSilentSeconds) continue;
    const auto [letter, now] = state_of_process(process_);
    if (letter == 'T' || now - computed >= kMostSilentSeconds / 2 ||
        silent > kMostWaitSeconds) {
      hung_ = true;
      return false;
    }
  }
}

bool IndexProcess::take(void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    if (!wait_for_bytes()) return false;
    const ssize_t got = ::read(from_, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// The program reads one request after the other, so a reply that was not read
// up to `done` would be taken for the reply to the next request. Each way out
// of here other than `answered` must therefore end the process, which index()
// does. A length beyond any index is taken as a broken stream, not allocated.
IndexProcess::End IndexProcess::ask(const files::DataFile& file,
                                    SentIndex& sent) {
  const auto length = static_cast<std::uint32_t>(file.path.size());
  std::string request(reinterpret_cast<const char*>(&length), sizeof(length));
  request += file.path;
  hung_ = false;
  if (::send(to_, request.data(), request.size(), MSG_NOSIGNAL) !=
      std::ssize(request))
    return End::killed;
  for (;;) {
    FrameHead head{};
    if (!take(&head, sizeof(head)) || head.bytes > kMostFrame)
      return hung_ ? End::hung : End::killed;
    if (head.kind == Frame::done) return End::answered;
    if (head.kind == Frame::progress) continue;
    void* to = nullptr;
    if (head.kind == Frame::chunks) {
      auto& places = sent.chunks.emplace_back(head.bytes / sizeof(ChunkPlace));
      to = places.data();
    } else {
      std::string& json = sent.json;
      json = head.kind == Frame::failed ? "!" : "";
      json.resize(json.size() + head.bytes);
      to = json.data() + json.size() - head.bytes;
    }
    if (!take(to, head.bytes)) return hung_ ? End::hung : End::killed;
  }
}

void IndexProcess::died(const files::DataFile& file, int status) {
  files::check_unchanged(file);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 12)
    throw failed(file, "hdf5.memory",
                 "there is not enough memory for the index of the file",
                 "the index is too large for the memory, or the file is "
                 "damaged: try h5dump -H FILE");
  throw failed(file, "hdf5.crashed",
               "the file is damaged: libhdf5 ended with " +
                   (WIFSIGNALED(status)
                        ? shown_signal(WTERMSIG(status))
                        : "status " + std::to_string(WEXITSTATUS(status))) +
                   " while it read the index of the file in a separate process",
               "get an intact copy of the file, or write the file again");
}

// Who is to blame decides what is done. A process that died by its own fault
// (SIGSEGV, SIGABRT, an exit status) does so again on this file: an error at
// once. One that was killed from outside (SIGKILL by the out-of-memory killer,
// SIGTERM) is tried up to three times, one that hung twice.
//
// Invariant: `process_` is 0 exactly while both descriptors are closed.
FileIndex IndexProcess::index(const files::DataFile& file) {
  if (std::optional<SentIndex> kept = kept_index(file))
    return index_from(file.path, file.bytes, kept->json,
                      std::move(kept->chunks));
  for (int tries = 1;; ++tries) {
    SentIndex sent;
    if (process_ == 0) start();
    const End how = ask(file, sent);
    if (how == End::answered) {
      if (!sent.json.starts_with('!')) {
        FileIndex index =
            index_from(file.path, file.bytes, sent.json, sent.chunks);
        keep_index(file, sent);
        return index;
      }
      const Json why = Json::parse(sent.json.substr(1), file.path);
      throw failed(file, why.find("code")->string(), why.find("why")->string(),
                   why.find("next")->string());
    }
    int status = 0;
    if (how == End::hung) ::kill(process_, SIGKILL);
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
    end();
    const bool killed = WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL ||
                                                WTERMSIG(status) == SIGTERM);
    if (how == End::killed && !killed) died(file, status);
    const std::string why =
        how == End::hung ? "the process that reads the index made no progress "
                           "for 1.5 seconds"
                         : "the process that reads the index was killed (" +
                               shown_signal(WTERMSIG(status)) +
                               "), as the system does when memory runs out";
    if (tries == kMostTries || (how == End::hung && tries == 2))
      throw failed(file, how == End::hung ? "hdf5.hung" : "hdf5.killed",
                   why + ", " + std::to_string(tries) + " times",
                   how == End::hung
                       ? "get an intact copy: libhdf5 loops on damaged files"
                       : "free some memory, and start again");
    log(LogLevel::warning,
        file.path + ": " + why + "; the process is started again");
  }
}

}  // namespace penstock::hdf5
