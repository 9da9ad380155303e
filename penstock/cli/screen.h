#pragma once

#include <string>

namespace penstock {

/// A text of several lines that is drawn over itself on a terminal.
class Screen {
 public:
  struct Size {
    int columns = 80, rows = 24;
  };
  /// What to print so that `text` stands where the text before stood: its lines
  /// cut to the width, and no more of them than there is height for, as what
  /// has left the screen cannot be drawn over.
  std::string over(const std::string& text, Size size);

 private:
  int lines_ = 0;
};

/// So many characters of its beginning; each of UTF-8 takes one place.
std::string first_places(const std::string& line, int places);

/// The terminal's own, or the usual one where it does not tell.
Screen::Size terminal_size(int descriptor);

}  // namespace penstock
