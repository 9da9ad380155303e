#pragma once

#include <signal.h>

#include <atomic>
#include <vector>

namespace penstock::python {

/// While it lives, the first signal of `ending` sets stop(), and each one of
/// `saving` save(), whatever Python does with them: Python's own handlers run
/// only between its instructions, and a run may wait without any. A second
/// SIGINT or SIGTERM gets what was there before. One at a time in a process.
class SignalsAsk {
 public:
  SignalsAsk(const std::vector<int>& ending, const std::vector<int>& saving);
  ~SignalsAsk();
  SignalsAsk(const SignalsAsk&) = delete;
  SignalsAsk& operator=(const SignalsAsk&) = delete;

  static const std::atomic<bool>& stop();
  static std::atomic<bool>& save();
  /// The signal that asked for the end; 0: none did.
  static int first();

 private:
  void handle(int number, void (*handler)(int));

  std::vector<int> numbers_;
};

}  // namespace penstock::python
