#include "penstock/base/ascii.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Ascii, ChangesItsOwnLettersAlone) {
  EXPECT_EQ(ascii_lower("@AMZ[ `amz{ 0Ä"), "@amz[ `amz{ 0Ä");
  EXPECT_EQ(ascii_upper("@AMZ[ `amz{ 0ä"), "@AMZ[ `AMZ{ 0ä");
}

TEST(Ascii, KeepsZeroBytes) {
  EXPECT_EQ(ascii_lower(std::string_view("A\0B", 3)), std::string("a\0b", 3));
}

}  // namespace
}  // namespace penstock
