#include "penstock/sources/timestamp.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(Timestamp, IsSecondsSince1970) {
  EXPECT_EQ(timestamp_from("1970-01-01T00:00:00Z"), 0.0);
  EXPECT_EQ(timestamp_from("2023-11-14T22:13:20Z"), 1700000000.0);
  EXPECT_EQ(timestamp_from("1969-12-31T23:59:59Z"), -1.0);
  EXPECT_EQ(timestamp_from("0001-01-01T00:00:00Z"), -62135596800.0);
  EXPECT_EQ(timestamp_from("9999-12-31T23:59:59Z"), 253402300799.0);
}

TEST(Timestamp, TakesASpaceForTheT) {
  EXPECT_EQ(timestamp_from("2023-11-14 22:13:20Z"), 1700000000.0);
}

TEST(Timestamp, IsUtcWithoutAZone) {
  EXPECT_EQ(timestamp_from("2023-11-14T22:13:20"), 1700000000.0);
}

TEST(Timestamp, TakesADateAlone) {
  EXPECT_EQ(timestamp_from("2023-11-15"), 1700006400.0);
}

TEST(Timestamp, TakesATimeWithoutSeconds) {
  EXPECT_EQ(timestamp_from("2023-11-14T22:13"), 1699999980.0);
  EXPECT_EQ(timestamp_from("2023-11-14T22:13+00:00"), 1699999980.0);
}

TEST(Timestamp, TakesZonesInThreeSpellings) {
  for (const char* zone : {"+02:00", "+0200", "+02"})
    EXPECT_EQ(timestamp_from(std::string("2023-11-15T00:13:20") + zone),
              1700000000.0)
        << zone;
  EXPECT_EQ(timestamp_from("2023-11-14T22:13:20.125-01:30"), 1700005400.125);
  EXPECT_EQ(timestamp_from("2023-11-14T22:13:20-00:00"), 1700000000.0);
}

TEST(Timestamp, TakesAFractionOfAnyLengthUpTo18) {
  EXPECT_EQ(timestamp_from("2023-11-14 22:13:20.25"), 1700000000.25);
  EXPECT_EQ(timestamp_from("1970-01-01T00:00:00.000000000000000001Z"), 1e-18);
  EXPECT_FALSE(timestamp_from("1970-01-01T00:00:00.0000000000000000001Z"));
}

TEST(Timestamp, IsRoundedOnceFromItsDecimals) {
  EXPECT_EQ(timestamp_from("2024-02-14T16:13:12.317Z"), 1707927192.317);
  EXPECT_EQ(timestamp_from("2001-09-09T01:46:39.999999999Z"),
            999999999.999999999);
  // Halfway between two float64, and a hair above it: a sum of seconds and
  // fraction would round both alike.
  EXPECT_EQ(timestamp_from("2023-11-14T22:13:20.00000011920928955Z"),
            1700000000.0);
  EXPECT_EQ(timestamp_from("2023-11-14T22:13:20.000000119209289551Z"),
            1700000000.0000002384185791015625);
}

TEST(Timestamp, CountsAFractionForwardBefore1970) {
  EXPECT_EQ(timestamp_from("1969-12-31T23:59:59.75Z"), -0.25);
  EXPECT_EQ(timestamp_from("1969-12-31T23:59:58.1Z"), -1.9);
}

TEST(Timestamp, KnowsTheLengthOfMonths) {
  EXPECT_TRUE(timestamp_from("2024-02-29"));
  for (const char* text : {"2023-02-29", "2023-04-31", "1900-02-29",
                           "2023-13-01", "2023-00-10", "2023-01-00"})
    EXPECT_FALSE(timestamp_from(text)) << text;
}

TEST(Timestamp, RefusesAllElse) {
  for (const char* text : {"",
                           "abc",
                           "12.5",
                           "2023",
                           "2023-11",
                           "2023-1-14",
                           "20231114",
                           "0000-01-01",
                           "-2023-11-14",
                           "2023-11-14T",
                           "2023-11-14T22",
                           "2023-11-14T24:00:00",
                           "2023-11-14T22:60:00",
                           "2023-11-14T22:13:60",
                           "2023-11-14T22:13:20.",
                           "2023-11-14T22:13:20,5",
                           "2023-11-14t22:13:20",
                           "2023-11-14T22:13:20z",
                           "2023-11-14T22:13:20 Z",
                           "2023-11-14T22:13:20+",
                           "2023-11-14T22:13:20+1",
                           "2023-11-14T22:13:20+01:",
                           "2023-11-14T22:13:20+24:00",
                           "2023-11-14T22:13:20+01:60",
                           "2023-11-14T22:13:20Zx",
                           " 2023-11-14",
                           "2023-11-14 ",
                           "2023-11-14Z"})
    EXPECT_FALSE(timestamp_from(text)) << text;
}

}  // namespace
}  // namespace penstock
