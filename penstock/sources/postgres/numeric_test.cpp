#include "penstock/sources/postgres/numeric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "penstock/sources/postgres/big_endian.h"

namespace penstock::postgres {
namespace {

std::string bytes_of(const std::vector<std::uint16_t>& groups, int weight,
                     unsigned sign = 0, unsigned scale = 0) {
  std::string bytes;
  append_big(bytes, static_cast<std::uint16_t>(groups.size()));
  append_big(bytes, static_cast<std::int16_t>(weight));
  append_big(bytes, static_cast<std::uint16_t>(sign));
  append_big(bytes, static_cast<std::uint16_t>(scale));
  for (std::uint16_t group : groups) append_big(bytes, group);
  return bytes;
}

constexpr unsigned kNegative = 0x4000, kNan = 0xC000, kInfinity = 0xD000,
                   kMinusInfinity = 0xF000;

std::optional<double> float64(const std::string& bytes) {
  return Numeric::from(bytes)->float64();
}
std::optional<std::int64_t> int64(const std::string& bytes) {
  return Numeric::from(bytes)->int64();
}
std::string text(const std::string& bytes) {
  return Numeric::from(bytes)->text();
}

TEST(Numeric, IsTheNearestFloat64) {
  EXPECT_EQ(float64(bytes_of({}, 0)), 0.0);
  EXPECT_EQ(float64(bytes_of({1}, 0)), 1.0);
  EXPECT_EQ(float64(bytes_of({12, 3400}, 0)), 12.34);
  EXPECT_EQ(float64(bytes_of({12, 3400}, 0, kNegative)), -12.34);
  EXPECT_EQ(float64(bytes_of({1}, -2)), 1e-8);
  EXPECT_EQ(float64(bytes_of({1}, 2)), 1e8);
  // 9007199254740993 lies between two float64 and goes to the even one.
  EXPECT_EQ(float64(bytes_of({9007, 1992, 5474, 993}, 3)), 9007199254740992.0);
  // The smallest bit more takes it to the other.
  std::vector<std::uint16_t> more = {9007, 1992, 5474, 993};
  more.resize(40);
  more.push_back(1);
  EXPECT_EQ(float64(bytes_of(more, 3)), 9007199254740994.0);
}

TEST(Numeric, OfThousandsOfDigitsIsStillRoundedOnce) {
  std::vector<std::uint16_t> groups(1000);
  groups.front() = 1;
  groups.back() = 1;
  EXPECT_EQ(float64(bytes_of(groups, 0)), 1.0);
  groups.assign(300, 3333);
  EXPECT_EQ(float64(bytes_of(groups, -1)), 1.0 / 3.0);
}

TEST(Numeric, BeyondFloat64IsNothingAndBelowItZero) {
  EXPECT_EQ(float64(bytes_of({1}, 78)), std::nullopt);
  EXPECT_EQ(float64(bytes_of({1}, 77)), 1e308);
  EXPECT_EQ(float64(bytes_of({1}, -90)), 0.0);
}

TEST(Numeric, IsNanOrInfinityWhereItSaysSo) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(float64(bytes_of({}, 0, kNan)),
              testing::Optional(testing::IsNan()));
  EXPECT_EQ(float64(bytes_of({}, 0, kInfinity)), kInf);
  EXPECT_EQ(float64(bytes_of({}, 0, kMinusInfinity)), -kInf);
}

TEST(Numeric, IsAnIntegerWhenItIsWholeAndFits) {
  EXPECT_EQ(int64(bytes_of({}, 0)), 0);
  EXPECT_EQ(int64(bytes_of({5}, 1)), 50000);
  EXPECT_EQ(int64(bytes_of({922, 3372, 368, 5477, 5807}, 4)), INT64_MAX);
  EXPECT_EQ(int64(bytes_of({922, 3372, 368, 5477, 5808}, 4)), std::nullopt);
  EXPECT_EQ(int64(bytes_of({922, 3372, 368, 5477, 5808}, 4, kNegative)),
            INT64_MIN);
  EXPECT_EQ(int64(bytes_of({1}, 30)), std::nullopt);
  EXPECT_EQ(int64(bytes_of({1, 5000}, 0)), std::nullopt);
  EXPECT_EQ(int64(bytes_of({5000}, -1)), std::nullopt);
  EXPECT_EQ(int64(bytes_of({}, 0, kNan)), std::nullopt);
}

TEST(Numeric, IsShownInFull) {
  EXPECT_EQ(text(bytes_of({}, 0)), "0");
  EXPECT_EQ(text(bytes_of({}, 0, 0, 2)), "0.00");
  EXPECT_EQ(text(bytes_of({12, 5000}, 0, kNegative, 2)), "-12.50");
  EXPECT_EQ(text(bytes_of({1, 2}, 1)), "10002");
  EXPECT_EQ(text(bytes_of({5}, -2, 0, 8)), "0.00000005");
  EXPECT_EQ(text(bytes_of({5}, 1)), "50000");
  EXPECT_EQ(text(bytes_of({}, 0, kNan)), "NaN");
  EXPECT_EQ(text(bytes_of({}, 0, kInfinity)), "Infinity");
  EXPECT_EQ(text(bytes_of({}, 0, kMinusInfinity)), "-Infinity");
}

TEST(Numeric, IsNotMadeOfOtherBytes) {
  EXPECT_FALSE(Numeric::from(""));
  EXPECT_FALSE(Numeric::from("1234567"));
  std::string short_of_one = bytes_of({1, 2}, 0);
  short_of_one.pop_back();
  EXPECT_FALSE(Numeric::from(short_of_one));
  EXPECT_FALSE(Numeric::from(bytes_of({1}, 0) + "xx"));
  EXPECT_FALSE(Numeric::from(bytes_of({10000}, 0)));
  EXPECT_FALSE(Numeric::from(bytes_of({1}, 0, 0x1234)));
}

}  // namespace
}  // namespace penstock::postgres
