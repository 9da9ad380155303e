#pragma once

#include <string>

#include "penstock/monitor/monitor.h"

namespace penstock {

/// Progress on standard error: one live line on a terminal, a plain line every
/// 30 seconds elsewhere. One thread.
class Terminal {
 public:
  Terminal();
  /// A line that stays.
  void note(const std::string& line);
  void progress(const Progress& progress);
  /// The same with a text of one's own.
  void progress(const std::string& text);
  /// Ends the live line.
  void end();

 private:
  bool is_due() const;  // for a plain line

  bool live_;          // standard error is a terminal
  bool open_ = false;  // the cursor stands behind a live line
  Nanoseconds said_;
};

}  // namespace penstock
