#include "penstock/transforms/augment/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "penstock/base/error.h"
#include "penstock/transforms/fields.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::vector<Augmentation> parsed(const std::string& list) {
  const Json section = Json::parse(
      R"({"x": {"array": {"column": "x", "shape": [4, 8], "augment": )" + list +
          "}}}",
      "test");
  const std::vector<Field> fields = parse_fields(section, "fields");
  const Json recipe = fields[0].kind->recipe();
  Json holder(Json::Object{});
  holder["augment"] = *recipe.find("array")->find("augment");
  Spec spec(holder, "test");
  return read_augment(spec, {.key = "augment"});
}

std::vector<float> augmented(std::vector<Augmentation> list,
                             std::vector<float> values, const Shape& shape,
                             std::int64_t sample, DrawKey key = {.seed = 3}) {
  Augmenter augmenter(std::move(list));
  StoredRow row;
  row.range.sample = sample;
  augmenter.apply(values.data(), AugmentShape(shape), row, key);
  return values;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

// The values are those of numpy: tests/data/sound/make_augment.py.
TEST(Augment, IsWhatItsTwinInNumpySays) {
  std::ifstream file(std::string(PENSTOCK_TEST_DATA) + "/sound/augment.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json cases = Json::parse(text, "augment.json");
  ASSERT_GE(cases.array().size(), 20u);
  for (const Json& one : cases.array()) {
    auto number = [&](const char* name) {
      return std::get<std::int64_t>(one.find(name)->value());
    };
    Shape shape;
    for (const Json& size : one.find("shape")->array())
      shape.push_back(std::get<std::int64_t>(size.value()));
    std::vector<float> values;
    for (std::int64_t i = 0; i < elements_of(shape); ++i)
      values.push_back(static_cast<float>((i * 37) % 101) - 50);
    values = augmented(parsed(one.find("augment")->dump()), values, shape,
                       number("sample"),
                       {.seed = static_cast<std::uint64_t>(number("seed")),
                        .epoch = number("epoch")});
    const auto& expected = one.find("values")->array();
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(static_cast<double>(values[i]), expected[i].number(), 2e-5)
          << one.find("augment")->dump() << " element " << i;
  }
}

TEST(Augment, MasksHoldTheirValueAndAllElseStays) {
  const auto list = parsed(
      R"([{"spec_augment": {"time_masks": 2, "time_width": 3,
           "frequency_masks": 1, "frequency_width": 2, "value": -1}}])");
  const std::vector<float> before = counted(32);
  int masked = 0;
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    const auto after = augmented(list, before, {4, 8}, sample);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] == -1)
        ++masked;
      else
        ASSERT_EQ(after[i], before[i]);
    }
    ASSERT_EQ(after, augmented(list, before, {4, 8}, sample)) << "keyed";
  }
  EXPECT_GT(masked, 1000);
  EXPECT_LT(masked, 200 * 30);
}

// However wide: narrow masks are set in other ways than wide ones.
TEST(Augment, AMaskOfTimeIsTheSameRunInEveryLine) {
  const auto list = parsed(
      R"([{"spec_augment": {"time_masks": 1, "time_width": 90, "value": -1}}])");
  const std::vector<float> before = counted(300);
  std::set<std::ptrdiff_t> widths;
  for (std::int64_t sample = 0; sample < 1000; ++sample) {
    const auto after = augmented(list, before, {3, 100}, sample);
    const auto width = std::count(after.begin(), after.begin() + 100, -1.0F);
    const auto begin = std::find(after.begin(), after.begin() + 100, -1.0F);
    widths.insert(width);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i % 100);
      const bool masked = width > 0 && at >= begin - after.begin() &&
                          at < begin - after.begin() + width;
      ASSERT_EQ(after[i], masked ? -1 : before[i]) << "width " << width;
    }
  }
  EXPECT_EQ(widths.size(), 91u);
}

// Rows are copied some at a time, each as if it were alone.
TEST(Augment, ABatchIsWhatItsRowsAreOneByOne) {
  const std::string masks =
      R"([{"spec_augment": {"time_masks": 2, "time_width": 20, "value": 7}}])";
  for (const Shape& shape : {Shape{40, 256}, Shape{64}}) {
    const auto each = static_cast<std::size_t>(elements_of(shape));
    const std::size_t rows = 3 * (256 << 10) / (each * sizeof(float)) + 5;
    std::string text = shape.size() == 1 ? "[64]" : "[40, 256]";
    const Json section =
        Json::parse(R"({"x": {"array": {"column": "x", "shape": )" + text +
                        R"(, "augment": )" + masks + "}}}",
                    "test");
    const auto finisher =
        parse_fields(section, "fields")[0].kind->finisher(true);
    const std::vector<float> stored = counted(each);
    std::vector<StoredRow> given(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      given[r].tensors = reinterpret_cast<const std::byte*>(stored.data());
      given[r].range.sample = static_cast<std::int64_t>(r);
    }
    std::vector<float> batch(rows * each);
    const TensorPlace place{.data = reinterpret_cast<std::byte*>(batch.data()),
                            .bytes = each * sizeof(float)};
    finisher->finish(given, {.seed = 3}, std::span(&place, 1));
    for (std::size_t r = 0; r < rows; ++r) {
      const auto begin = batch.begin() + static_cast<std::ptrdiff_t>(r * each);
      ASSERT_EQ(
          std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(each)),
          augmented(parsed(masks), stored, shape, static_cast<std::int64_t>(r)))
          << r;
    }
  }
}

TEST(Augment, NoiseHasThePowerThatIsAskedFor) {
  const auto list = parsed(R"([{"noise": {"snr": 20}}])");
  std::vector<float> before(20'000);
  for (std::size_t i = 0; i < before.size(); ++i)
    before[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
  const auto after = augmented(list, before, {20'000}, 7);
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    signal += std::pow(before[i], 2);
    noise += std::pow(after[i] - before[i], 2);
  }
  EXPECT_NEAR(10 * std::log10(signal / noise), 20, 0.1);
}

TEST(Augment, AShiftLosesNothingWhereItWraps) {
  const auto list = parsed(R"([{"time_shift": {"most": 0.5}}])");
  std::set<float> firsts;
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    auto after = augmented(list, counted(8), {8}, sample);
    firsts.insert(after[0]);
    std::ranges::sort(after);
    EXPECT_EQ(after, counted(8));
  }
  EXPECT_EQ(firsts.size(), 8u);
}

TEST(Augment, ZeroProbabilityChangesNothing) {
  const auto list = parsed(
      R"([{"gain": {"probability": 0}}, {"noise": {"probability": 0}},
          {"time_shift": {"probability": 0}}, {"spec_augment": {}}])");
  EXPECT_EQ(augmented(list, counted(32), {4, 8}, 1), counted(32));
}

TEST(Augment, WrongSettingsAreNamed) {
  for (auto [list, expected] :
       {std::pair(R"({"gain": {}})", "expected a list"),
        std::pair(R"([{}])", "names 0 augmentations"),
        std::pair(R"([{"gain": {}, "noise": {}}])", "names 2 augmentations"),
        std::pair(R"([{"gain": {"db": [3, -3]}}])", "least first"),
        std::pair(R"([{"gain": {"db": "loud"}}])", "augment[0].gain.db"),
        std::pair(R"([{"spec_augment": {"time_masks": -1}}])", "time_masks"),
        std::pair(R"([{"reverb": {}}])", "reverb")})
    try {
      parsed(list);
      ADD_FAILURE() << list;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
}

}  // namespace
}  // namespace penstock
