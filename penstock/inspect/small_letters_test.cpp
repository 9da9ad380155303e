#include "penstock/inspect/small_letters.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

/// What a text looks like, a line for each row of pixels.
std::string drawn(const std::string& text, int width, int dot) {
  const SmallLetters letters{.dot = dot};
  const auto pixels = static_cast<std::size_t>(width) *
                      static_cast<std::size_t>(letters.height());
  std::vector<std::uint8_t> rgb(pixels * 3, 255);
  letters.draw(text, {.rgb = rgb, .width = width}, 0, 0, width);
  std::string seen;
  for (std::size_t at = 0; at < pixels; ++at) {
    seen += rgb[3 * at] == 0 ? '#' : '.';
    if ((at + 1) % static_cast<std::size_t>(width) == 0) seen += '\n';
  }
  return seen;
}

TEST(SmallLettersTest, LettersStandBesideOneAnother) {
  EXPECT_EQ(drawn("Hi\xC3\xA9", 11, 1),
            "#.#..#..###\n"
            "#.#.....###\n"
            "###..#..###\n"
            "#.#..#..###\n"
            "#.#..#..###\n");
}

TEST(SmallLettersTest, OnlyWhatFitsIsDrawn) {
  EXPECT_EQ(drawn("LL", 7, 2).substr(0, 16), "##.....\n##.....\n");
  EXPECT_EQ(drawn("LL", 7, 2).substr(64), "######.\n######.\n");
  EXPECT_EQ(drawn("L", 2, 1), "..\n..\n..\n..\n..\n");
}

}  // namespace
}  // namespace penstock
