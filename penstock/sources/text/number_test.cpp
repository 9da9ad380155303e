// Numbers that are read at once are those that std::from_chars reads.
#include "penstock/sources/text/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <random>
#include <string>

namespace penstock::text {
namespace {

/// A text with other numbers before and behind it, as in a chunk.
class Within {
 public:
  explicit Within(const std::string& text)
      : chunk_("99999999999999999," + text + ",99999999999999999"),
        begin_(chunk_.data() + 18),
        end_(begin_ + text.size()) {}
  template <class Number>
  bool read(Number& number, char point = '.') const {
    return read_plain(begin_, end_, point, number);
  }
  bool decimal(PlainDecimal& to, char point) const {
    return plain_decimal(begin_, end_, point, to);
  }
  bool decimal_by_bytes(PlainDecimal& to, char point) const {
    return plain_decimal_by_bytes(begin_, end_, point, to);
  }

 private:
  const std::string chunk_;
  const char* begin_;
  const char* end_;
};

template <class Number>
::testing::AssertionResult as_from_chars(const std::string& text,
                                         bool must_be_read = false) {
  Number read{}, expected{};
  const char* end = text.data() + text.size();
  if (!Within(text).read(read))
    return must_be_read ? ::testing::AssertionFailure() << "left: " << text
                        : ::testing::AssertionSuccess();
  auto [at, error] = std::from_chars(text.data(), end, expected);
  if (error != std::errc() || at != end)
    return ::testing::AssertionFailure() << "read, but no number: " << text;
  if (std::memcmp(&read, &expected, sizeof(read)) == 0)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << text << " is " << expected << ", not " << read;
}

std::string number_like(std::mt19937_64& random, const char* of, int most) {
  std::string text;
  const std::string characters = of;
  for (auto left = random() % static_cast<unsigned>(most); left > 0; --left)
    text += characters[random() % characters.size()];
  return text;
}

std::string fixed(std::mt19937_64& random) {
  std::string text = random() % 2 ? "-" : "";
  text += std::to_string(random() % 1000);
  if (const auto digits = random() % 12) {
    text += '.';
    for (auto left = digits; left > 0; --left)
      text += static_cast<char>('0' + random() % 10);
  }
  return text;
}

/// As programs write a float64, so that it comes back.
std::string shortest(std::mt19937_64& random) {
  const double value = std::ldexp(static_cast<double>(random() >> 11),
                                  static_cast<int>(random() % 60) - 75);
  char text[64];
  return {text, std::to_chars(text, text + sizeof(text), value,
                              std::chars_format::fixed)
                    .ptr};
}

TEST(PlainNumber, IsTheOneThatFromCharsReads) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = fixed(random);
    EXPECT_TRUE(as_from_chars<double>(text, true));
    EXPECT_TRUE(as_from_chars<float>(text));
    const std::string whole = text.substr(0, text.find('.'));
    EXPECT_TRUE(as_from_chars<std::int64_t>(whole, true));
    EXPECT_TRUE(as_from_chars<std::int8_t>(whole));
    EXPECT_TRUE(as_from_chars<std::uint16_t>(whole));
    EXPECT_TRUE(as_from_chars<std::uint64_t>(whole));
  }
}

TEST(PlainNumber, OfManyDigitsIsRoundedOnce) {
  std::mt19937_64 random(4);
  int read = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::string text = shortest(random);
    double value = 0;
    read += Within(text).read(value);
    EXPECT_TRUE(as_from_chars<double>(text));
    EXPECT_TRUE(as_from_chars<float>(text));
    std::string digits = std::to_string(random());
    if (digits.size() > 19) digits.pop_back();
    EXPECT_TRUE(as_from_chars<double>(digits, true));
    digits.insert(random() % digits.size(), ".");
    EXPECT_TRUE(as_from_chars<double>(digits, true));
  }
  EXPECT_GT(read, 20000);
  // Halfway between two float64, just below and just above.
  for (const char* text :
       {"9007199254740993", "9007199254740993.0", "9007199254740992.9",
        "9007199254740993.1", "9007199254740995.0", "4503599627370496.5",
        "4503599627370497.5", "4503599627370496.501", "4503599627370497.499",
        "9999999999999999999", "0.9999999999999999", "0.99999999999999999",
        "1.000000000000000001", ".1234567890123456789", "1234567890123456789."})
    EXPECT_TRUE(as_from_chars<double>(text, true)) << text;
}

TEST(PlainNumber, IsNothingElse) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 50000; ++i) {
    const std::string text =
        number_like(random, i % 2 ? "0123456789" : "0123456789.-+e ,/:", 24);
    EXPECT_TRUE(as_from_chars<double>(text));
    EXPECT_TRUE(as_from_chars<float>(text));
    EXPECT_TRUE(as_from_chars<std::int64_t>(text));
    EXPECT_TRUE(as_from_chars<std::int32_t>(text));
    EXPECT_TRUE(as_from_chars<std::uint8_t>(text));
  }
}

TEST(PlainNumber, IsTheSameByteByByte) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50000; ++i) {
    std::string text = number_like(random, "0123456789.-,", 24);
    if (i % 3 == 0 && !text.empty())  // any byte
      text[random() % text.size()] = static_cast<char>(random());
    for (char point : {'.', ',', '\0'}) {
      PlainDecimal at_once, by_bytes;
      const bool read = Within(text).decimal(at_once, point);
      ASSERT_EQ(read, Within(text).decimal_by_bytes(by_bytes, point)) << text;
      if (!read) continue;
      EXPECT_EQ(at_once.digits, by_bytes.digits) << text;
      EXPECT_EQ(at_once.fraction, by_bytes.fraction) << text;
      EXPECT_EQ(at_once.point, by_bytes.point) << text;
      EXPECT_EQ(at_once.negative, by_bytes.negative) << text;
    }
  }
}

TEST(PlainNumber, KeepsSignsOfZerosAndLimits) {
  double real = 1;
  ASSERT_TRUE(Within("-0.0").read(real));
  EXPECT_TRUE(std::signbit(real));
  std::int8_t narrow = 0;
  EXPECT_TRUE(Within("-128").read(narrow));
  EXPECT_EQ(narrow, -128);
  EXPECT_FALSE(Within("128").read(narrow));
  std::uint64_t wide = 0;
  EXPECT_FALSE(Within("-0").read(wide)) << "as std::from_chars";
  EXPECT_TRUE(Within("9999999999999999999").read(wide));
  EXPECT_EQ(wide, 9999999999999999999u);
  std::int64_t whole = 0;
  EXPECT_FALSE(Within("9223372036854775808").read(whole));
  EXPECT_TRUE(Within("-9223372036854775807").read(whole));
  EXPECT_EQ(whole, -9223372036854775807);
  EXPECT_TRUE(Within("1,5").read(real, ','));
  EXPECT_EQ(real, 1.5);
  EXPECT_FALSE(Within("1.5").read(real, ','));
}

TEST(PlainNumber, OfFloat32IsRoundedOnce) {
  // Between two of float32, and a little beyond: rounding to float64 first
  // loses what decides.
  for (const char* text : {"16777217", "16777217.000001", "1.000000059604645",
                           "0.3000000119209290", "8388608.5", "8388609.5"})
    EXPECT_TRUE(as_from_chars<float>(text)) << text;
  float value = 0;
  EXPECT_FALSE(Within("16777217").read(value)) << "a tie is left";
}

}  // namespace
}  // namespace penstock::text
