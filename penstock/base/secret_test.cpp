#include "penstock/base/secret.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(WithoutPassword, HidesItInBothForms) {
  EXPECT_EQ(without_password("postgresql://me:hush@host:5432/db?a=b"),
            "postgresql://me:***@host:5432/db?a=b");
  EXPECT_EQ(without_password("postgresql://host:5432/db?password=hush&x=1"),
            "postgresql://host:5432/db?password=***&x=1");
  EXPECT_EQ(without_password("host=h password=hush user=me"),
            "host=h password=*** user=me");
  EXPECT_EQ(without_password("password = 'a b\\'c' host=h"),
            "password = *** host=h");
}

TEST(WithoutPassword, LeavesOthersAlone) {
  EXPECT_EQ(without_password("postgresql://me@host:5432/db"),
            "postgresql://me@host:5432/db");
  EXPECT_EQ(without_password("postgresql://host/db"), "postgresql://host/db");
}

}  // namespace
}  // namespace penstock
