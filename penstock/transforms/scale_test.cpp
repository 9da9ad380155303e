#include "penstock/transforms/scale.h"

#include <gtest/gtest.h>

#include <cstring>

#include "penstock/transforms/pack.h"

namespace penstock {
namespace {

/// A column of float64 as it is packed.
double packed(const Standard& standard, double value) {
  std::vector<Field> fields = parse_fields(
      Json::parse(R"({"y": {"columns": ["y"], "dtype": "float64"}})", "test"),
      "fields");
  double number = 0;
  pack_row(fields, layout_of(fields), Fitted{{{standard}}}, {&value, 1},
           reinterpret_cast<std::byte*>(&number), [] { return ""; });
  return number;
}

TEST(Scale, RestoresWhatWasStandardised) {
  Standard standard{
      .name = "y", .standardize = true, .mean = 40, .divisor = 0.5};
  EXPECT_EQ(packed(standard, 43), 6);
  EXPECT_EQ(scale_of(standard).restored(packed(standard, 43)), 43);
  EXPECT_EQ(scale_of(standard).restored(0), 40);
}

TEST(Scale, LeavesWhatWasNotStandardised) {
  Standard standard{
      .name = "y", .standardize = false, .mean = 40, .divisor = 0.5};
  EXPECT_EQ(scale_of(standard).restored(packed(standard, 43)), 43);
  EXPECT_EQ(Scale().restored(-2.5), -2.5);
}

}  // namespace
}  // namespace penstock
