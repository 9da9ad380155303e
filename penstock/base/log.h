#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace penstock {

enum class LogLevel { debug, info, warning, error, off };

std::string_view name_of(LogLevel level);
/// True and sets `level` for "debug", "info", "warning", "error" or "off".
bool log_level_from(std::string_view name, LogLevel& level);

/// Where messages go. The default writes lines to standard error from
/// `warning` up, or from the level that PENSTOCK_LOG names. Thread-safe. Never
/// throws, so that destructors and callbacks of C libraries may call it: a
/// message that cannot be written is lost, whatever the writer throws.
void log(LogLevel level, std::string_view message) noexcept;
/// For a `catch (...)` where nothing more can be done: `doing` and what the
/// exception that is being handled says.
void log_exception(LogLevel level, std::string_view doing) noexcept;
void set_log_level(LogLevel level);
/// Replaces the writer; an empty function restores the default.
void set_log_writer(std::function<void(LogLevel, std::string_view)> writer);

/// While one lives, a message of its thread that comes again word for word is
/// dropped: for work that opens the same things several times.
class DropRepeats {
 public:
  DropRepeats();
  DropRepeats(const DropRepeats&) = delete;
  DropRepeats& operator=(const DropRepeats&) = delete;
  ~DropRepeats();

 private:
  std::set<std::string, std::less<>> before_;
  std::set<std::string, std::less<>>* const outer_;
};

}  // namespace penstock
