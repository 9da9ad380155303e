#pragma once

#include <functional>
#include <string_view>

namespace penstock {

enum class LogLevel;

/// While it exists, `writer` gets each message of the log from `least` up,
/// whatever the level of the log itself; see log(). One at a time.
class LogCopy {
 public:
  LogCopy(LogLevel least,
          std::function<void(LogLevel, std::string_view)> writer);
  ~LogCopy();
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;
};

}  // namespace penstock
