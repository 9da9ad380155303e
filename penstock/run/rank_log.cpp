#include "penstock/run/rank_log.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "penstock/base/log.h"

namespace penstock {
namespace {

constexpr std::size_t kMostKept = 1 << 20;  // bytes, where no folder is made

}  // namespace

RankLog::RankLog(int rank)
    : rank_(rank),
      copy_(LogLevel::info, [this](LogLevel level, std::string_view text) {
        add(std::string(name_of(level)) + ": " + std::string(text));
      }) {}

// log() is not called under the lock: it would come back here.
void RankLog::open(const std::filesystem::path& run) {
  const std::filesystem::path path =
      run / "ranks" / (std::to_string(rank_) + ".log");
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "ae"));
  const int reason = errno;
  const bool there = file != nullptr;
  {
    Lock lock(mutex_);
    file_ = std::move(file);
    opened_ = true;
    write(std::exchange(kept_, {}));
  }
  if (!there)
    log(LogLevel::warning, "cannot write the log of rank " +
                               std::to_string(rank_) + ", " + path.string() +
                               ": " + std::strerror(reason));
}

void RankLog::add(std::string_view line) {
  std::string entry = utc_text(std::chrono::system_clock::now()) + " ";
  entry += line;
  entry += "\n";
  Lock lock(mutex_);
  if (opened_)
    write(entry);
  else if (kept_.size() + entry.size() <= kMostKept)
    kept_ += entry;
}

void RankLog::add_failure() {
  std::string what = "an exception that is not a std::exception";
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  add("error: " + what);
}

void RankLog::write(const std::string& lines) {
  if (file_ == nullptr) return;
  std::fputs(lines.c_str(), file_.get());
  std::fflush(file_.get());
}

TrainListener RankLog::logged(TrainListener listener) {
  if (rank_ != 0) listener = {};
  listener.note = [this,
                   note = std::move(listener.note)](const std::string& line) {
    add(line);
    if (note) note(line);
  };
  return listener;
}

}  // namespace penstock
