#include "penstock/transforms/standardization.h"

#include <gtest/gtest.h>

#include "penstock/transforms/number_encoder.h"

namespace penstock {
namespace {

/// A column of float64 as stored.
double stored(const Standardization& number, double value) {
  double out = 0;
  NumberEncoder({number}, {"y", "column"}, Dtype::float64)
      .encode(&value, reinterpret_cast<std::byte*>(&out));
  return out;
}

TEST(Scale, RestoresWhatWasStandardised) {
  Standardization standard{
      .name = "y", .standardize = true, .mean = 40, .divisor = 0.5};
  EXPECT_EQ(stored(standard, 43), 6);
  EXPECT_EQ(scale_of(standard).restored(stored(standard, 43)), 43);
  EXPECT_EQ(scale_of(standard).restored(0), 40);
}

TEST(Scale, LeavesWhatWasNotStandardised) {
  Standardization standard{
      .name = "y", .standardize = false, .mean = 40, .divisor = 0.5};
  EXPECT_EQ(scale_of(standard).restored(stored(standard, 43)), 43);
  EXPECT_EQ(Scale().restored(-2.5), -2.5);
}

}  // namespace
}  // namespace penstock
