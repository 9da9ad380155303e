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

TEST(RowNames, StayWhenAPartIsAddedBefore) {
  RowNames before({{"b", 3}, {"c", 3}, {"d", 5}});
  RowNames after({{"a", 10}, {"b", 13}, {"c", 13}, {"d", 15}});
  for (std::int64_t row = 0; row < 5; ++row)
    EXPECT_EQ(before.of(row), after.of(row + 10)) << row;
}

TEST(RowNames, DifferForAllRows) {
  RowNames names({{"b", 300}, {"bb", 600}, {"c", 601}});
  std::set<std::string> all;
  for (std::int64_t row = 0; row < 601; ++row) all.emplace(names.of(row));
  EXPECT_EQ(all.size(), 601u);
}

}  // namespace
}  // namespace penstock
