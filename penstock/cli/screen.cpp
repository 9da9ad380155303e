#include "penstock/cli/screen.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <vector>

#include "penstock/base/printable.h"

namespace penstock {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

// ECMA-48: CSI n A moves up n lines, CSI 2 K erases a line, CSI J all below.
// Lines are cut to the terminal's width, since a line that wraps would take
// two, and the cursor would then return to a wrong place.
std::string Screen::over(const std::string& text, Size size) {
  std::vector<std::string> lines = lines_of(text);
  // The cursor stands on a line of its own, below.
  const auto most = static_cast<std::size_t>(std::max(2, size.rows - 1));
  if (lines.size() > most) {
    const std::size_t left_out = lines.size() - most + 1;
    lines.resize(most - 1);
    lines.push_back("(" + std::to_string(left_out) + " more)");
  }
  std::string drawn = lines_ > 0 ? "\x1b[" + std::to_string(lines_) + "A" : "";
  for (const std::string& line : lines)
    drawn += "\x1b[2K" + first_places(printable(line), size.columns) + "\n";
  lines_ = static_cast<int>(lines.size());
  return drawn + "\x1b[J";  // what stood below
}

// Counts characters, not bytes: continuation bytes of UTF-8 (10xxxxxx) take no
// place. Wide characters, as of Chinese, count as one place and may still wrap.
std::string first_places(const std::string& line, int places) {
  std::size_t at = 0;
  for (; at < line.size(); ++at)
    if ((line[at] & 0xc0) != 0x80 && places-- <= 0) break;
  return line.substr(0, at);
}

Screen::Size terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
      size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

}  // namespace penstock
