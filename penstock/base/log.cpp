#include "penstock/base/log.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "penstock/base/log_copy.h"
#include "penstock/base/printable.h"
#include "penstock/base/sync.h"

namespace penstock {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error",
                                       "off"};

struct Sink {
  Mutex mutex;
  LogLevel level PENSTOCK_GUARDED_BY(mutex) = LogLevel::warning;
  std::function<void(LogLevel, std::string_view)> writer
      PENSTOCK_GUARDED_BY(mutex);
  LogLevel copied PENSTOCK_GUARDED_BY(mutex) = LogLevel::off;
  std::function<void(LogLevel, std::string_view)> copy
      PENSTOCK_GUARDED_BY(mutex);
};

// Leaked on purpose: threads that end after main may still log.
Sink& sink() {
  static Sink* only = [] {
    auto* made = new Sink;
    LogLevel level{};
    const char* name = std::getenv("PENSTOCK_LOG");
    if (name == nullptr || !log_level_from(name, level)) return made;
    Lock lock(made->mutex);
    made->level = level;
    return made;
  }();
  return *only;
}

thread_local std::set<std::string, std::less<>>* t_before = nullptr;

void write(LogLevel level, std::string_view text) {
  if (t_before != nullptr && !t_before->emplace(text).second) return;
  Sink& to = sink();
  Lock lock(to.mutex);
  const bool copied = to.copy && level >= to.copied;
  const bool written = level >= to.level && to.level != LogLevel::off;
  if (!copied && !written) return;
  const std::string message = printable_lines(text);
  if (copied) to.copy(level, message);
  if (!written) return;
  if (to.writer) {
    to.writer(level, message);
    return;
  }
  std::string line =
      "penstock " + std::string(name_of(level)) + ": " + message + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace

std::string_view name_of(LogLevel level) {
  return kNames[static_cast<std::size_t>(level)];
}

bool log_level_from(std::string_view name, LogLevel& level) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    level = static_cast<LogLevel>(i);
    return true;
  }
  return false;
}

void log(LogLevel level, std::string_view message) noexcept {
  try {
    write(level, message);
  } catch (...) {
    std::fputs("penstock: a message could not be written to the log\n", stderr);
  }
}

void log_exception(LogLevel level, std::string_view doing) noexcept {
  try {
    std::string message(doing);
    try {
      throw;
    } catch (const std::exception& error) {
      message += std::string(": ") + error.what();
    } catch (...) {
      message += ": an exception that is not a std::exception";
    }
    log(level, message);
  } catch (...) {  // no memory for the text
    log(level, doing);
  }
}

void set_log_level(LogLevel level) {
  Sink& to = sink();
  Lock lock(to.mutex);
  to.level = level;
}

void set_log_writer(std::function<void(LogLevel, std::string_view)> writer) {
  Sink& to = sink();
  Lock lock(to.mutex);
  to.writer = std::move(writer);
}

DropRepeats::DropRepeats() : outer_(std::exchange(t_before, &before_)) {}

DropRepeats::~DropRepeats() { t_before = outer_; }

LogCopy::LogCopy(LogLevel least,
                 std::function<void(LogLevel, std::string_view)> writer) {
  Sink& to = sink();
  Lock lock(to.mutex);
  to.copied = least;
  to.copy = std::move(writer);
}

LogCopy::~LogCopy() {
  Sink& to = sink();
  Lock lock(to.mutex);
  to.copy = {};
}

}  // namespace penstock
