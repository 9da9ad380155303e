#include "penstock/sources/joined.h"

#include <gmock/gmock.h>

#include "penstock/sources/fake/fake_source.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<FakeSource> table(const CountingOptions& options,
                                  const std::vector<ColumnRequest>& requests) {
  return std::make_unique<FakeSource>(counting_table(options), requests);
}

TEST(Joined, ARowThatTheRightOneLacksHasAProblem) {
  auto source = joined(table({.rows = 6}, {{"value"}}),
                       table({.rows = 4}, {{"group", ReadAs::value}}));
  ScannedBlock all = scan_all(*source);
  ASSERT_EQ(all.rows, 6);
  ASSERT_EQ(all.problems.size(), 2u);
  EXPECT_EQ(all.problems[0].row, 4);
  EXPECT_EQ(all.problems[0].column, 1u);
  EXPECT_EQ(all.problems[0].why, "has no row with key 40 in a fake table");
  EXPECT_EQ(all.problems[1].row, 5);
  EXPECT_EQ(all.columns[0].float64(4), 4.0);
  EXPECT_FALSE(all.columns[1].valid(4));
  EXPECT_EQ(all.columns[1].text(3), "group-0");
  Block block;
  open_checked_reader(*source)->read(integer_keys({50, 10}), block);
  ASSERT_EQ(block.problems.size(), 1u);
  EXPECT_EQ(block.problems[0].row, 0);
}

TEST(Joined, NeverLooksForRowsOfTheRightOneAlone) {
  auto source = joined(table({.rows = 3}, {{"value"}}),
                       table({.rows = 9}, {{"group", ReadAs::value}}));
  EXPECT_EQ(scan_all(*source).rows, 3);
  EXPECT_EQ(source->count().rows, 3);
}

TEST(Joined, RefusesOtherKeysAndOtherNumbersOfRows) {
  auto refusal = [](std::unique_ptr<Source> a, std::unique_ptr<Source> b) {
    return error_of([&] { joined(std::move(a), std::move(b)); });
  };
  Error error = refusal(table({.key = ColumnType::text}, {{"value"}}),
                        table({}, {{"value"}}));
  EXPECT_EQ(error.parts().code, "source.cannot_join");
  EXPECT_THAT(error.parts().why,
              HasSubstr("text, but those of the second are int64"));
  error =
      refusal(counting_store(5, {{"value"}}), counting_store(6, {{"packed"}}));
  EXPECT_EQ(error.parts().code, "source.cannot_join");
  EXPECT_THAT(error.parts().why, HasSubstr("5 rows, but the second has 6"));
  EXPECT_EQ(refusal(counting_store(5, {{"value"}}), table({}, {{"value"}}))
                .parts()
                .code,
            "source.cannot_join");
}

TEST(Joined, HasTheColumnsOfBothOnce) {
  auto source = joined(table({}, {{"value"}}), table({}, {{"value"}}));
  std::vector<std::string> names;
  for (const ColumnInfo& column : source->schema().columns)
    names.push_back(column.name);
  EXPECT_THAT(names, ElementsAre("id", "value", "group", "items"));
  EXPECT_EQ(source->types().size(), 2u);
}

}  // namespace
}  // namespace penstock
