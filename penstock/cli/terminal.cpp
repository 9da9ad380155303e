#include "penstock/cli/terminal.h"

#include <unistd.h>

#include <cstdio>

#include "penstock/base/printable.h"
#include "penstock/cli/screen.h"

namespace penstock {
namespace {

/// In the last place some terminals wrap already.
int columns() { return terminal_size(STDERR_FILENO).columns - 1; }

}  // namespace

Terminal::Terminal()
    : live_(::isatty(STDERR_FILENO) == 1), said_(wall_clock().now()) {}

void Terminal::note(const std::string& line) {
  end();
  std::fprintf(stderr, "%s\n", printable_lines(line).c_str());
}

void Terminal::progress(const Progress& progress) {
  if (live_)
    show(progress_line(progress, columns()));
  else if (is_due())
    show(progress_line(progress));
}

void Terminal::progress(const std::string& text) {
  const Nanoseconds now = wall_clock().now();
  if (live_ && now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  show(text);
}

void Terminal::show(const std::string& line) {
  const std::string text = printable(line);
  if (live_) {
    // Carriage return, the line, and "erase to the end" (ECMA-48 EL).
    std::fprintf(stderr, "\r%s\x1b[K", first_places(text, columns()).c_str());
    open_ = true;
  } else if (is_due()) {
    said_ = wall_clock().now();
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

bool Terminal::is_due() const {
  return wall_clock().now() - said_ >= std::chrono::seconds(30);
}

void Terminal::end() {
  if (open_) std::fputc('\n', stderr);
  open_ = false;
}

}  // namespace penstock
