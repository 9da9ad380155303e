#include "penstock/cli/screen.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(ScreenTest, DrawsOverWhatStoodThere) {
  Screen screen;
  EXPECT_EQ(screen.over("one\ntwo\n", {}), "\x1b[2Kone\n\x1b[2Ktwo\n\x1b[J");
  EXPECT_EQ(screen.over("three\n", {}), "\x1b[2A\x1b[2Kthree\n\x1b[J");
  EXPECT_EQ(screen.over("", {}), "\x1b[1A\x1b[J");
}

TEST(ScreenTest, CutsLinesToTheWidthByCharacters) {
  EXPECT_EQ(Screen().over("äöü\nab\n", {.columns = 2}),
            "\x1b[2Käö\n\x1b[2Kab\n\x1b[J");
}

TEST(ScreenTest, LeavesOutWhatTheHeightHasNoRoomFor) {
  EXPECT_EQ(Screen().over("1\n2\n3\n4\n5\n", {.rows = 4}),
            "\x1b[2K1\n\x1b[2K2\n\x1b[2K(3 more)\n\x1b[J");
}

TEST(ScreenTest, ATerminalThatTellsNoSizeHasTheUsualOne) {
  EXPECT_EQ(terminal_size(-1).columns, 80);
  EXPECT_EQ(terminal_size(-1).rows, 24);
}

}  // namespace
}  // namespace penstock
