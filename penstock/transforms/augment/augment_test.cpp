#include "penstock/transforms/augment/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <tuple>

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
  const Json recipe = fields[0].kind->facts().recipe;
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

std::unique_ptr<FieldFinisher> finisher_of(const std::string& shape,
                                           const std::string& list) {
  const Json section =
      Json::parse(R"({"x": {"array": {"column": "x", "shape": )" + shape +
                      R"(, "augment": )" + list + "}}}",
                  "test");
  return parse_fields(section, "fields")[0].kind->finisher(true);
}

std::vector<float> row_of(const std::vector<float>& rows, std::size_t at,
                          std::size_t each) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(at * each);
  return {begin, begin + static_cast<std::ptrdiff_t>(each)};
}

std::vector<float> on_host(FieldFinisher& finisher, std::vector<float> stored,
                           std::size_t sample) {
  std::vector<float> made(stored.size());
  StoredRow row;
  row.tensors = reinterpret_cast<const std::byte*>(stored.data());
  row.range.sample = static_cast<std::int64_t>(sample);
  const TensorPlace to{.data = reinterpret_cast<std::byte*>(made.data()),
                       .bytes = made.size() * sizeof(float)};
  finisher.finish(std::span(&row, 1), {.seed = 3}, std::span(&to, 1));
  return made;
}

/// Rows of the two in `stored` in turns, at these places of a batch that held
/// sevens.
std::vector<float> on_device(FieldFinisher& finisher, const std::string& kind,
                             const std::vector<float>& stored,
                             const std::vector<std::int64_t>& starts) {
  const std::size_t each = stored.size() / 2, bytes = each * sizeof(float);
  const auto* from = reinterpret_cast<const std::byte*>(stored.data());
  std::vector<float> made(static_cast<std::size_t>(starts.back() + 1) * each,
                          7.0F);
  auto* host = reinterpret_cast<std::byte*>(made.data());
  const std::unique_ptr<Device> device = open_device({.kind = kind});
  const std::unique_ptr<Stream> stream = device->make_stream();
  const Buffer one = device->allocate(bytes), two = device->allocate(bytes);
  const Buffer batch = device->allocate(made.size() * sizeof(float));
  stream->copy(one.data(), from, bytes);
  stream->copy(two.data(), from + bytes, bytes);
  stream->copy(batch.data(), host, batch.size());
  std::vector<StoredRow> rows(starts.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].tensors = r % 2 == 0 ? one.data() : two.data();
    rows[r].range.sample = static_cast<std::int64_t>(r);
  }
  const TensorPlace place{
      .data = batch.data(), .bytes = bytes, .starts = starts};
  const Buffer scratch = device->allocate(
      rows.size() * finisher.queue_needs(MemoryKind::cpu)->scratch_bytes);
  finisher.queue({.rows = rows,
                  .tensor_bytes = bytes,
                  .key = {.seed = 3},
                  .to = std::span(&place, 1),
                  .scratch = scratch.data()},
                 *stream);
  stream->copy(host, batch.data(), batch.size());
  stream->synchronize();
  return made;
}

// Of rows here and there in its memory, to places with a gap between them.
TEST(Augment, ADeviceMakesTheRowsThatTheHostMakes) {
  std::vector<std::int64_t> starts(50);
  std::iota(starts.begin(), starts.begin() + 20, 0);
  std::iota(starts.begin() + 20, starts.end(), 21);
  for (const auto& [shape, each, list] :
       {std::tuple("[64]", 64u, R"([{"spec_augment": {"time_masks": 2,
                                                      "time_width": 9}}])"),
        std::tuple("[64]", 64u, R"([{"gain": {"probability": 0.5}}])"),
        std::tuple("[1, 64]", 64u, R"([{"gain": {}}, {"time_shift": {}}])"),
        std::tuple("[2, 64]", 128u,
                   R"([{"time_shift": {"most": 1, "fill": "zeros"}},
                       {"time_shift": {"most": 1, "probability": 0.5}},
                       {"gain": {"db": [-90, 90]}}])"),
        std::tuple("[4, 16]", 64u,
                   R"([{"spec_augment": {"time_masks": 1, "time_width": 9,
                                         "value": 3}},
                       {"gain": {}}, {"gain": {}},
                       {"spec_augment": {"frequency_masks": 1,
                                         "frequency_width": 2}},
                       {"time_shift": {}}])"),
        std::tuple("[2, 8, 16]", 256u,
                   R"([{"spec_augment": {"time_masks": 2, "time_width": 9,
                                         "frequency_masks": 2,
                                         "frequency_width": 3}},
                       {"spec_augment": {"time_masks": 1, "time_width": 40,
                                         "value": -1.5}}])")})
    for (const char* kind : {"cpu", "sim"}) {
      const auto finisher = finisher_of(shape, list);
      EXPECT_TRUE(finisher->queue_needs(MemoryKind::cuda));
      const std::vector<float> stored = counted(2 * each);
      const auto made = on_device(*finisher, kind, stored, starts);
      for (std::size_t r = 0; r < starts.size(); ++r) {
        const auto expected =
            on_host(*finisher, row_of(stored, r % 2, each), r);
        ASSERT_EQ(row_of(made, static_cast<std::size_t>(starts[r]), each),
                  expected)
            << kind << " " << shape << " row " << r;
      }
      EXPECT_EQ(row_of(made, 20, each), std::vector<float>(each, 7.0F));
    }
}

TEST(Augment, WhatAddsNumbersStaysWithTheHost) {
  for (const char* list :
       {R"([{"noise": {}}])", R"([{"spec_augment": {"time_warp": 3}}])",
        R"([{"spec_augment": {"time_masks": 1,
                                                 "time_width": 2}},
                               {"gain": {}}, {"noise": {}}])"})
    EXPECT_FALSE(finisher_of("[64]", list)->queue_needs(MemoryKind::sim))
        << list;
}

// Rows are copied some at a time, each as if it were alone.
TEST(Augment, ABatchIsWhatItsRowsAreOneByOne) {
  const std::string time_masks =
      R"([{"spec_augment": {"time_masks": 2, "time_width": 20, "value": 7}}])";
  const std::string all_masks =
      R"([{"spec_augment": {"time_masks": 2, "time_width": 20,
                            "frequency_masks": 3, "frequency_width": 9}},
          {"spec_augment": {"frequency_masks": 1, "frequency_width": 5,
                            "value": 7}},
          {"gain": {}}])";
  for (const auto& [text, shape, masks] :
       {std::tuple("[40, 256]", Shape{40, 256}, time_masks),
        std::tuple("[64]", Shape{64}, time_masks),
        std::tuple("[40, 256]", Shape{40, 256}, all_masks),
        std::tuple("[3, 16, 100]", Shape{3, 16, 100}, all_masks)}) {
    const auto each = static_cast<std::size_t>(elements_of(shape));
    const std::size_t rows = 3 * (256 << 10) / (each * sizeof(float)) + 5;
    const auto finisher = finisher_of(text, masks);
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
        std::pair(R"([{"gain": {"db": [3, -3]}}])", "smaller number first"),
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
