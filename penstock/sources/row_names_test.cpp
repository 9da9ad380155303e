#include <gtest/gtest.h>

#include <set>
#include <string>

#include "penstock/sources/sources.h"

namespace penstock {
namespace {

TEST(RowNames, ArePositionsWhereThereAreNoParts) {
  RowNames names;
  const std::int64_t position = 70'000;
  EXPECT_EQ(names.of(position),
            std::string(reinterpret_cast<const char*>(&position), 8));
}

std::shared_ptr<const RowParts> parts_of(
    std::initializer_list<std::pair<const char*, std::int64_t>> parts) {
  auto made = std::make_shared<RowParts>();
  for (auto [name, end] : parts) made->add(name, end);
  return made;
}

TEST(RowNames, StayWhenAPartIsAddedBefore) {
  RowNames before(parts_of({{"b", 3}, {"c", 3}, {"d", 5}}));
  RowNames after(parts_of({{"a", 10}, {"b", 13}, {"c", 13}, {"d", 15}}));
  for (std::int64_t row = 0; row < 5; ++row)
    EXPECT_EQ(before.of(row), after.of(row + 10)) << row;
}

TEST(RowNames, DifferForAllRows) {
  RowNames names(parts_of({{"b", 300}, {"bb", 600}, {"c", 601}}));
  std::set<std::string> all;
  for (std::int64_t row = 0; row < 601; ++row) all.emplace(names.of(row));
  EXPECT_EQ(all.size(), 601u);
}

TEST(RowParts, OfOneRowEachAreTheSameHoweverTheyAreAdded) {
  const auto one_by_one = parts_of({{"a", 1}, {"bcd", 2}, {"", 3}});
  RowParts at_once;
  const std::uint32_t sizes[] = {1, 3, 0};
  at_once.add_single(std::string_view("a\0bcd\0\0", 7), sizes);
  ASSERT_EQ(at_once.size(), 3u);
  for (std::size_t part = 0; part < 3; ++part) {
    EXPECT_EQ(at_once.name(part), one_by_one->name(part));
    EXPECT_EQ(at_once.begin(part), static_cast<std::int64_t>(part));
    EXPECT_EQ(at_once.part_of(static_cast<std::int64_t>(part)), part);
  }
  EXPECT_EQ(at_once.part_of(3), 3u);
  EXPECT_EQ(at_once.names(0, 2), std::string_view("a\0bcd\0", 6));
}

TEST(RowParts, SomeMayHaveNoRowsOrMany) {
  const auto parts = parts_of({{"a", 1}, {"b", 1}, {"c", 9}});
  EXPECT_EQ(parts->part_of(0), 0u);
  EXPECT_EQ(parts->part_of(1), 2u);
  EXPECT_EQ(parts->part_of(8), 2u);
  EXPECT_EQ(parts->part_of(9), 3u);
  EXPECT_EQ(parts->begin(2), 1);
}

}  // namespace
}  // namespace penstock
