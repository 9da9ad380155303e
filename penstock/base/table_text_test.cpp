#include "penstock/base/table_text.h"

#include <gtest/gtest.h>

#include "penstock/base/printable.h"

namespace penstock {
namespace {

TEST(TableText, AColumnIsAsWideAsItsWidestCell) {
  EXPECT_EQ(table_text({{"a", "bb"}, {"größe", "1"}, {"x", ""}}),
            "a      bb\n"
            "größe  1\n"
            "x\n");
}

TEST(TableText, NothingInACellIsATerminalsBusiness) {
  EXPECT_EQ(printable("größe"), "größe");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f\t"), "a\\nb\\u001b[31m\\u007f\\t");
  EXPECT_EQ(table_text({{"a\nb", "c"}}), "a\\nb  c\n");
}

}  // namespace
}  // namespace penstock
