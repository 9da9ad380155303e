#include "penstock/sources/concatenated.h"

#include <gmock/gmock.h>

#include "penstock/sources/fake/fake_source.h"
#include "penstock/sources/fake/fake_store.h"
#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

const std::vector<ColumnRequest> kValue = {{"value"}};

std::unique_ptr<Source> table(const CountingOptions& options,
                              const std::vector<ColumnRequest>& requests) {
  return std::make_unique<FakeSource>(counting_table(options), requests);
}

template <class... Sources>
std::unique_ptr<Source> all_of(Sources... sources) {
  std::vector<std::unique_ptr<Source>> all;
  (all.push_back(std::move(sources)), ...);
  return concatenated(std::move(all));
}

TEST(Concatenated, NamesAllThatItIsMadeOf) {
  auto source = all_of(counting_store(5, kValue), counting_store(7, kValue));
  EXPECT_EQ(source->shown(), "a fake store + a fake store");
  EXPECT_EQ(source->identity().find("sources")->array().size(), 2u);
  EXPECT_EQ(source->count().rows, 12);
}

TEST(Concatenated, RefusesSourcesOfOtherColumns) {
  auto refusal = [](std::unique_ptr<Source> a, std::unique_ptr<Source> b) {
    return error_of([&] { all_of(std::move(a), std::move(b)); });
  };
  Error error =
      refusal(counting_store(5, kValue), counting_store(5, {{"packed"}}));
  EXPECT_EQ(error.parts().code, "source.other_columns");
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_THAT(error.parts().why, HasSubstr("is binary"));
  EXPECT_EQ(refusal(counting_store(5, kValue),
                    counting_store(5, {{"value"}, {"packed"}}))
                .parts()
                .code,
            "source.other_columns");
  EXPECT_EQ(refusal(counting_store(5, kValue), table({}, kValue)).parts().code,
            "source.other_columns");
  EXPECT_EQ(refusal(table({.key = ColumnType::text}, kValue), table({}, kValue))
                .parts()
                .code,
            "source.other_columns");
}

TEST(Concatenated, LocksWhereOneOfThemDoes) {
  EXPECT_TRUE(all_of(counting_store(5, kValue),
                     counting_store(5, kValue, {.global_lock = true}))
                  ->abilities()
                  .global_lock);
}

TEST(Concatenated, NestsInItself) {
  auto source = all_of(all_of(counting_store(5, kValue, {.global_lock = true}),
                              counting_store(5, kValue)),
                       counting_store(5, kValue));
  std::vector<std::int64_t> asked = {14, 4, 5, 0};
  Block block;
  open_checked_reader(*source)->read(asked, block);
  for (std::int64_t row = 0; row < 4; ++row)
    EXPECT_EQ(block.columns[0].float64(row),
              static_cast<double>(asked[static_cast<std::size_t>(row)] % 5));
}

}  // namespace
}  // namespace penstock
