#include "penstock/base/real_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>

namespace penstock {
namespace {

template <class Real>
std::errc read(const std::string& text, Real& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = real_from_chars(text.data(), end, number);
  EXPECT_EQ(at, end) << text;
  return error;
}

TEST(RealNumber, IsZeroWhereItIsTooSmall) {
  for (const char* text : {"1e-400", "3.2e-330", "2e-324", "0.00001e-320",
                           "12345e-400", "1e-99999999999999999999"})
    for (const char* sign : {"", "-"}) {
      double number = 7;
      EXPECT_EQ(read(std::string(sign) + text, number), std::errc()) << text;
      EXPECT_EQ(number, 0);
      EXPECT_EQ(std::signbit(number), sign[0] == '-') << text;
    }
  double tiny = 7;
  EXPECT_EQ(read("0." + std::string(400, '0') + "1", tiny), std::errc());
  EXPECT_EQ(tiny, 0);
  float narrow = 7;
  EXPECT_EQ(read("1e-46", narrow), std::errc());
  EXPECT_EQ(narrow, 0);
}

TEST(RealNumber, KeepsWhatIsSmallerThanANormalNumber) {
  double number = 0;
  EXPECT_EQ(read("4.9e-324", number), std::errc());
  EXPECT_EQ(number, std::numeric_limits<double>::denorm_min());
  float narrow = 0;
  EXPECT_EQ(read("1e-40", narrow), std::errc());
  EXPECT_EQ(narrow, 1e-40F);
}

TEST(RealNumber, IsOutOfRangeWhereItIsTooLarge) {
  for (const std::string& text :
       {std::string("1e400"), std::string("-1.8e+308"),
        std::string("0.001e400"), std::string("1e99999999999999999999"),
        "1" + std::string(400, '0')}) {
    double number = 7;
    EXPECT_EQ(read(text, number), std::errc::result_out_of_range) << text;
    EXPECT_EQ(number, 7);
  }
  float narrow = 7;
  EXPECT_EQ(read("1e39", narrow), std::errc::result_out_of_range);
}

TEST(RealNumber, ReadsAllElseAsTheStandardDoes) {
  double number = 0;
  EXPECT_EQ(read("-2.5e3", number), std::errc());
  EXPECT_EQ(number, -2500);
  const char* word = "x";
  EXPECT_EQ(real_from_chars(word, word + 1, number).ec,
            std::errc::invalid_argument);
}

}  // namespace
}  // namespace penstock
