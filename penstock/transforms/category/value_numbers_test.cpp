#include "penstock/transforms/category/value_numbers.h"

#include <gtest/gtest.h>

#include <map>

#include "penstock/base/base.h"

namespace penstock {
namespace {

// Short ones, and such as do not fit beside their number.
TEST(ValueNumbers, AreTheSameOneByOneAndTogether) {
  constexpr int kValues = 20'000;
  Random draw(1, 0, 0, 0);
  std::vector<std::string> values = {"", std::string(1, '\0')};
  while (values.size() < kValues)
    values.push_back(std::string(draw.below(60), 'a') +
                     std::to_string(draw.below(5000)));
  const std::vector<std::string_view> views(values.begin(), values.end());
  std::map<std::string_view, std::int64_t> expected;
  ValueNumbers one_by_one, together;
  std::vector<std::int64_t> numbers(kValues), found(kValues);
  together.add(views, numbers);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::int64_t number =
        expected.emplace(views[i], std::ssize(expected)).first->second;
    ASSERT_EQ(one_by_one.add(views[i]), number) << views[i];
    ASSERT_EQ(numbers[i], number) << views[i];
    ASSERT_EQ(together.value(number), views[i]);
  }
  EXPECT_EQ(together.size(), std::ssize(expected));
  together.find(views, found);
  EXPECT_EQ(found, numbers);
  EXPECT_EQ(together.find("none of them"), -1);
  EXPECT_EQ(ValueNumbers().find(""), -1);
}

}  // namespace
}  // namespace penstock
