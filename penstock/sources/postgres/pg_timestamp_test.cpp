#include "penstock/sources/postgres/pg_timestamp.h"

#include <gtest/gtest.h>

#include <limits>

namespace penstock::postgres {
namespace {

constexpr std::int64_t kDay = 86'400'000'000;

PgTimestamp micros(std::int64_t since_2000) {
  return PgTimestamp::of_microseconds(since_2000);
}

TEST(PgTimestamp, IsSecondsSince1970) {
  EXPECT_EQ(micros(0).seconds(), 946684800.0);
  EXPECT_EQ(micros(-946684800'000'000).seconds(), 0.0);
  EXPECT_EQ(micros(753315200'250'000).seconds(), 1700000000.25);
  EXPECT_EQ(micros(820582441'123'000).seconds(), 1767267241.123);
  EXPECT_EQ(PgTimestamp::of_days(-10957).seconds(), 0.0);
  EXPECT_EQ(PgTimestamp::of_days(1).seconds(), 946771200.0);
}

TEST(PgTimestamp, FarAwayIsRoundedOnceToo) {
  EXPECT_EQ(micros(9'000'000'000'000'000'001).seconds(), 9000946684800.000001);
  EXPECT_EQ(micros(-200'000'000'000'000'001).seconds(), -199053315200.000001);
  EXPECT_EQ(PgTimestamp::of_days(2'000'000'000).seconds(), 172800946684800.0);
}

TEST(PgTimestamp, OfAnInfinityHasNoSeconds) {
  using Days = std::numeric_limits<std::int32_t>;
  using Micros = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(micros(Micros::max()).seconds(), std::nullopt);
  EXPECT_EQ(micros(Micros::min()).seconds(), std::nullopt);
  EXPECT_EQ(PgTimestamp::of_days(Days::max()).seconds(), std::nullopt);
  EXPECT_EQ(PgTimestamp::of_days(Days::min()).seconds(), std::nullopt);
  EXPECT_EQ(micros(Micros::max()).text(true), "infinity");
  EXPECT_EQ(PgTimestamp::of_days(Days::min()).text(false), "-infinity");
}

TEST(PgTimestamp, IsWrittenAsIso8601) {
  EXPECT_EQ(micros(820582441'123'000).text(true), "2026-01-01T11:34:01.123Z");
  EXPECT_EQ(micros(820582441'000'001).text(false),
            "2026-01-01T11:34:01.000001");
  EXPECT_EQ(micros(-1).text(true), "1999-12-31T23:59:59.999999Z");
  EXPECT_EQ(PgTimestamp::of_days(59).text(false), "2000-02-29");
  EXPECT_EQ(micros(kDay * 106'000'000).text(true),
            "292218-02-22T00:00:00.000Z");
}

TEST(PgTimestamp, ComesFromSeconds) {
  EXPECT_EQ(PgTimestamp::at(946684800.0)->microseconds(), 0);
  EXPECT_EQ(PgTimestamp::at(0.0)->microseconds(), -946684800'000'000);
  // Every whole millisecond of these years comes back as it was.
  for (std::int64_t ms = 1'700'000'000'000; ms < 1'800'000'000'000;
       ms += 9'999'991)
    EXPECT_EQ(PgTimestamp::at(static_cast<double>(ms) / 1e3)->microseconds(),
              ms * 1000 - 946684800'000'000);
  EXPECT_EQ(PgTimestamp::at(1e300), std::nullopt);
  EXPECT_EQ(PgTimestamp::at(std::numeric_limits<double>::quiet_NaN()),
            std::nullopt);
}

}  // namespace
}  // namespace penstock::postgres
