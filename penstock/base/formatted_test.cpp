#include "penstock/base/formatted.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Formatted, IsWhatPrintfPrints) {
  EXPECT_EQ(formatted("%.1f ms, %s", 2.25, "read"), "2.2 ms, read");
  EXPECT_EQ(formatted("%ld of %d; 100 %%", 7L, 9), "7 of 9; 100 %");
  EXPECT_EQ(formatted("%s", ""), "");
}

TEST(Formatted, IsAsLongAsItHasToBe) {
  for (std::size_t length : {254u, 255u, 256u, 257u, 5000u}) {
    const std::string name(length, 'x');
    EXPECT_EQ(formatted("%s.", name.c_str()), name + ".");
  }
}

}  // namespace
}  // namespace penstock
