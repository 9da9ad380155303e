#include "penstock/frontends/cli/terminal.h"

#include <unistd.h>

#include <cstdio>

namespace penstock {

Terminal::Terminal()
    : live_(::isatty(STDERR_FILENO) == 1), said_(wall_clock().now()) {}

void Terminal::note(const std::string& line) {
  end();
  std::fprintf(stderr, "%s\n", line.c_str());
}

void Terminal::progress(const Progress& progress) {
  if (live_) {
    // Carriage return, the line, and "erase to the end" (ECMA-48 EL).
    std::fprintf(stderr, "\r%s\x1b[K", progress_line(progress).c_str());
    open_ = true;
    return;
  }
  Nanoseconds now = wall_clock().now();
  if (now - said_ < std::chrono::seconds(30)) return;
  said_ = now;
  std::fprintf(stderr, "%s\n", progress_line(progress).c_str());
}

void Terminal::end() {
  if (open_) std::fputc('\n', stderr);
  open_ = false;
}

}  // namespace penstock
