#include "penstock/base/base64.h"

#include <gtest/gtest.h>

#include <utility>

namespace penstock {
namespace {

TEST(Base64, GoesThereAndBack) {
  // RFC 4648, section 10.
  constexpr std::pair<const char*, const char*> kKnown[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kKnown) {
    EXPECT_EQ(base64_of(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(from_base64(base64_of(all)), all);
}

TEST(Base64, OtherTextsAreRefused) {
  for (const char* text : {"Zm9v!", "Zm 9v", "Z=g=", "Zm-_"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace penstock
