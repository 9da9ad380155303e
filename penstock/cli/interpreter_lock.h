#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// Looks at which threads of a Python program hold the interpreter's lock, by
/// py-spy, where that is installed. The program goes on meanwhile. One thread.
class InterpreterLock {
 public:
  explicit InterpreterLock(pid_t process) : process_(process) {}

  /// One look; it takes a tenth of a second or less.
  void look();
  /// Counts what `py-spy dump --json` printed. False where that is no list of
  /// threads.
  bool count(const std::string& dump);

  /// {"looks", "held", "holders": [{"thread", "share"}], "why_not"}: shares of
  /// the looks; null and empty where there were none, and then why.
  Json json() const;
  /// It was held nearly always: more threads gain nothing.
  bool limits() const;
  /// "the interpreter's lock was held in 95 % of 40 looks (spinner 93 %): ...",
  /// or why that is not known.
  std::string text() const;

 private:
  const pid_t process_;
  std::int64_t looks_ = 0, held_ = 0;
  std::map<std::string, std::int64_t> holders_;
  std::string why_not_;
};

}  // namespace penstock
