#pragma once

#include <string>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// Progress on standard error: one live line on a terminal, a plain line every
/// 30 seconds elsewhere. Whatever ends it, the text that follows begins on a
/// line of its own. One thread.
class Terminal {
 public:
  Terminal();
  Terminal(const Terminal&) = delete;
  ~Terminal() { end(); }
  /// A line that stays.
  void note(const std::string& line);
  void progress(const Progress& progress);
  /// The same with the caller's text, however often it comes: the live line
  /// changes at most 10 times per second.
  void progress(const std::string& text);
  /// Ends the live line.
  void end();

 private:
  bool is_due() const;  // for a plain line
  void show(const std::string& text);

  bool live_;             // standard error is a terminal
  bool open_ = false;     // the cursor stands behind a live line
  Nanoseconds said_;      // the last plain line
  Nanoseconds drawn_{0};  // the live line
};

}  // namespace penstock
