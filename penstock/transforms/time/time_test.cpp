#include "penstock/transforms/time/time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/field_run.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::SizeIs;

FieldRun run(const std::string& parts,
             const std::vector<std::optional<double>>& seconds) {
  FieldRun run(R"({"time": {"column": "c")" + parts + "}}",
               column_of<double>(ColumnType::float64, seconds));
  run.fit();
  return run;
}

TEST(Time, IsSecondsSince1970WithTheirFractions) {
  FieldRun times = run("", {{1'700'000'000.25}, {-1}, {0}});
  EXPECT_EQ(times.tensors()[0].dtype, Dtype::float64);
  EXPECT_THAT(times.tensors()[0].row_shape, SizeIs(0));
  EXPECT_THAT(times.tensor<double>(), ElementsAre(1'700'000'000.25, -1, 0));
}

TEST(Time, PartsAreAnglesInTheOrderThatIsAsked) {
  // 1970-01-01 06:00, a Thursday.
  FieldRun times =
      run(R"(, "parts": ["hour", "day_of_year", "weekday"])", {{6 * 3600.0}});
  const float thursday = static_cast<float>(2 * 3.14159265358979 * 3 / 7);
  EXPECT_THAT(times.tensors()[0].row_shape, ElementsAre(6));
  EXPECT_THAT(times.tensor<float>(),
              ElementsAre(FloatNear(1, 1e-6f), FloatNear(0, 1e-6f), 0, 1,
                          FloatNear(std::sin(thursday), 1e-6f),
                          FloatNear(std::cos(thursday), 1e-6f)));
}

TEST(Time, NullIsWhatMissingSays) {
  const std::vector<std::optional<double>> seconds = {
      {43'200}, std::nullopt, {std::nan("")}};
  EXPECT_THAT(run(R"(, "missing": "zero")", seconds).tensor<double>(),
              ElementsAre(43'200, 0, 0));
  EXPECT_THAT(run(R"(, "missing": -1.5)", seconds).tensor<double>(),
              ElementsAre(43'200, -1.5, -1.5));
  EXPECT_THAT(run(R"(, "missing": "nan")", seconds).tensor<double>(),
              ElementsAre(43'200, testing::IsNan(), testing::IsNan()));
  FieldRun masked = run(R"(, "missing": "mask")", seconds);
  EXPECT_THAT(masked.tensor<double>(), ElementsAre(43'200, 0, 0));
  EXPECT_EQ(masked.tensors()[1].name, "x_mask");
  EXPECT_THAT(masked.tensor<float>(1), ElementsAre(1, 0, 0));
}

TEST(Time, PartsOfNoTimeAreZeroBesideTheirMask) {
  FieldRun times = run(R"(, "parts": ["hour"], "missing": "mask")",
                       {{43'200}, std::nullopt});
  EXPECT_THAT(times.tensor<float>(),
              ElementsAre(FloatNear(0, 1e-6f), -1, 0, 0));
  EXPECT_THAT(times.tensor<float>(1), ElementsAre(1, 0));
  EXPECT_THROW(run(R"(, "parts": ["hour"], "missing": "nan")", {{0}}), Error);
}

TEST(Time, PartsFollowTheGregorianCalendarInUtc) {
  const double day = 86400;
  EXPECT_EQ(turns_of(TimePart::hour, 0.75 * day), 0.75);
  EXPECT_EQ(turns_of(TimePart::hour, -0.25 * day), 0.75);
  EXPECT_EQ(turns_of(TimePart::weekday, 4 * day), 0);  // Monday
  EXPECT_EQ(turns_of(TimePart::weekday, -day), 2.0 / 7);
  EXPECT_EQ(turns_of(TimePart::day_of_year, 1709164800), 59.0 / 366);  // leap
  EXPECT_EQ(turns_of(TimePart::day_of_year, -1), 364.0 / 365);
  EXPECT_EQ(turns_of(TimePart::day_of_year, 951782400), 59.0 / 366)
      << "2000-02-29 was a day";
  for (double seconds = -3e9; seconds < 5e9; seconds += 1.234567e6)
    for (TimePart part :
         {TimePart::hour, TimePart::weekday, TimePart::day_of_year}) {
      EXPECT_GE(turns_of(part, seconds), 0) << seconds;
      EXPECT_LT(turns_of(part, seconds), 1) << seconds;
    }
}

TEST(Time, ARowWithoutATimeIsBad) {
  FieldRun times =
      run("", {{}, {1}, {std::numeric_limits<double>::quiet_NaN()}, {1e300}});
  ASSERT_THAT(times.faults(), SizeIs(3));
  EXPECT_THAT(times.faults()[0].why, HasSubstr("is NULL"));
  EXPECT_EQ(times.faults()[1].row, 2);
  EXPECT_THAT(times.faults()[2].why, HasSubstr("1e+300"));
}

TEST(Time, UnknownPartsAndPartsNamedTwiceAreRefused) {
  auto refused = [](const std::string& parts) {
    try {
      run(R"(, "parts": )" + parts, {{0}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(refused(R"(["minute"])"), HasSubstr("\"day_of_year\""));
  EXPECT_THAT(refused(R"(["hour", "hour"])"), HasSubstr("twice"));
}

TEST(Time, BooleansAreNoTimes) {
  Column column{.type = ColumnType::boolean};
  column.append_boolean(true);
  EXPECT_THROW(FieldRun(R"({"time": {"column": "c"}})", std::move(column),
                        {.boolean = true}),
               Error);
}

}  // namespace
}  // namespace penstock
