#include "penstock/transforms/json_set/decimal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <string>

#include "penstock/base/random.h"

namespace penstock {
namespace {

// What the text begins with, by our reader; `rest` is what it left.
bool reads(const std::string& text, double& number, std::string* rest) {
  std::string padded = text + std::string(64, '\0');
  const char* end = padded.data() + text.size();
  const char* p = read_number(padded.data(), end, number);
  if (p != nullptr && rest != nullptr) *rest = std::string(p, end);
  return p != nullptr;
}

void expect_as_strtod(const std::string& text) {
  double number = -1;
  std::string rest;
  ASSERT_TRUE(reads(text + ",", number, &rest)) << text;
  EXPECT_EQ(rest, ",") << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(number),
            std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
      << text;
}

std::string digits(Random& random, std::uint64_t count) {
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i)
    text += static_cast<char>('0' + random.below(10));
  return text;
}

TEST(Decimal, ReadsNumbersOfEveryShapeCorrectlyRounded) {
  Random random(1, 0, 0, 0);
  for (int i = 0; i < 300000; ++i) {
    std::string text = random.below(2) == 0 ? "-" : "";
    auto whole = 1 + random.below(random.below(8) == 0 ? 22 : 5);
    if (random.below(3) == 0)
      text += "0";
    else
      text +=
          static_cast<char>('1' + random.below(9)) + digits(random, whole - 1);
    auto places = random.below(random.below(8) == 0 ? 30 : 19);
    if (places > 0) text += "." + digits(random, places);
    if (random.below(8) == 0)
      text += "e" + std::to_string(static_cast<int>(random.below(60)) - 30);
    if (std::strtod(text.c_str(), nullptr) != 0) expect_as_strtod(text);
  }
}

// Decimal texts of numbers half way between two doubles, and one digit next
// to them: where a wrong sticky bit shows.
TEST(Decimal, RoundsHalfWaysToEven) {
  Random random(2, 0, 0, 0);
  for (int i = 0; i < 100000; ++i) {
    // m / 2^k with 54 bits in m, so that the last one is half an ulp. It has
    // k decimal places; few enough ones fit into a word.
    auto places = 1 + random.below(3);
    std::uint64_t m = (std::uint64_t{1} << 53) + random.below(1ull << 53);
    m |= 1;
    std::uint64_t whole = m >> places;
    std::uint64_t part = m & ((1u << places) - 1);
    for (std::uint64_t p = 0; p < places; ++p) part *= 5;
    std::string fraction = std::to_string(part);
    fraction.insert(0, places - fraction.size(), '0');
    expect_as_strtod(std::to_string(whole) + "." + fraction);
  }
}

TEST(Decimal, DividesExactlyForEveryPower) {
  Random random(3, 0, 0, 0);
  for (unsigned k = 1; k <= 19; ++k)
    for (int i = 0; i < 20000; ++i) {
      std::uint64_t w = (random.next() >> 1) >> random.below(62);
      if (w == 0) continue;
      std::string text = std::to_string(w) + "e-" + std::to_string(k);
      EXPECT_EQ(divided_by_power(w, k), std::strtod(text.c_str(), nullptr))
          << text;
    }
}

TEST(Decimal, NegativeZeroIsZero) {
  for (const char* text :
       {"-0", "-0.0", "-0e5", "0", "-0.000000000000000000"}) {
    double number = -1;
    ASSERT_TRUE(reads(text, number, nullptr)) << text;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(number), 0u) << text;
  }
}

TEST(Decimal, StopsWhereANumberEnds) {
  double number = 0;
  std::string rest;
  ASSERT_TRUE(reads("12x", number, &rest));
  EXPECT_EQ(rest, "x");
  ASSERT_TRUE(reads("1.5-", number, &rest));
  EXPECT_EQ(number, 1.5);
  EXPECT_EQ(rest, "-");
}

TEST(Decimal, DoesNotKnowWhatIsNoJsonNumberOrNoDouble) {
  double number = 0;
  for (const char* text : {"", "-", "01", "-01", ".5", "1.", "1.e5", "1e",
                           "1e+", "+1", "NaN", "Infinity", "-Infinity",
                           "000000001", "0123456789", "1e999", "-1e999", "x"})
    EXPECT_FALSE(reads(text, number, nullptr)) << text;
}

}  // namespace
}  // namespace penstock
