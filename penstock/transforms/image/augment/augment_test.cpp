// Changed pictures are the bytes that torchvision makes of those of Pillow.
#include "penstock/transforms/image/augment/augment.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <set>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/transforms/image/augment/erase.h"
#include "penstock/transforms/image/test_pictures.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// The pixels of make_changes.py.
Pixels picture_of(int width, int height, PictureMode mode) {
  Pixels pixels;
  pixels.reshape(width, height, mode);
  const int channels = static_cast<int>(bytes_of(mode));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const int smooth = x * 5 + y * 3 + c * 60 + x * y * (c + 1) / 9;
        const int rough = (x * 7919 + y * 104729 + c * 1299709) % 101;
        pixels.row(y)[x * channels + c] =
            static_cast<std::uint8_t>(smooth % 200 + rough / 2);
      }
  return pixels;
}

std::span<const std::uint8_t> bytes_in(const Pixels& pixels) {
  return {pixels.row(0),
          pixels.row_bytes() * static_cast<std::size_t>(pixels.height)};
}

Interpolation interpolation_of(const std::string& name) {
  return name == "bilinear"  ? Interpolation::bilinear
         : name == "bicubic" ? Interpolation::bicubic
                             : Interpolation::nearest;
}

PixelChange change_of(const Json& json) {
  PixelChange change{
      .change = static_cast<Change>(json.find("change")->integer()),
      .interpolation = interpolation_of(json.find("interpolation")->string())};
  std::size_t at = 0;
  for (const Json& number : json.find("numbers")->array())
    change.numbers[at++] = number.number();
  at = 0;
  for (const Json& byte : json.find("fill")->array())
    change.fill[at++] = static_cast<std::uint8_t>(byte.integer());
  return change;
}

int integer(const Json& json, const char* key, std::size_t at) {
  return static_cast<int>(json.find(key)->array()[at].integer());
}

class AugmentTest : public testing::Test {
 protected:
  static std::vector<Augment> parsed(const std::string& list) {
    return parse_augments(Json::parse(list, "test"), "augment");
  }
  static std::string refused(const std::string& list) {
    try {
      parsed(list);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  static std::vector<PixelChange> draws(const std::vector<Augment>& augments,
                                        std::uint64_t sample) {
    std::vector<PixelChange> changes;
    draw_changes(augments, 224, 160, Random(1, 0, sample, 0), changes);
    return changes;
  }

  const Json golden_ = Json::parse(
      test_pictures::read_file(PENSTOCK_TEST_DATA "/images/changes.json"),
      "changes.json");
  PixelChanger changer_;
};

TEST_F(AugmentTest, EveryChangeHasTorchvisionsBytes) {
  std::set<std::int64_t> seen;
  for (const Json& json : golden_.find("changes")->array()) {
    SCOPED_TRACE(json.dump());
    const bool rgb = json.find("mode")->string() == "RGB";
    Pixels pixels =
        picture_of(integer(json, "size", 0), integer(json, "size", 1),
                   rgb ? PictureMode::rgb : PictureMode::grey);
    changer_.apply(change_of(json), pixels);
    Sha256 hash;
    hash.add(std::as_bytes(bytes_in(pixels)));
    EXPECT_EQ(hash.hex(), json.find("sha256")->string());
    seen.insert(json.find("change")->integer());
  }
  EXPECT_EQ(seen.size(), 14U);
}

// torch adds up in an order of its own: the last bit of a float32 decides where
// a byte is half way.
TEST_F(AugmentTest, ABlurDiffersFromTorchvisionsByOneAtMostAndSeldom) {
  for (const Json& json : golden_.find("blurs")->array()) {
    Pixels pixels = picture_of(37, 29, PictureMode::rgb);
    PixelChange change{.change = Change::blur};
    for (std::size_t at = 0; at < 4; ++at)
      change.numbers[at] = json.find("numbers")->array()[at].number();
    changer_.apply(change, pixels);
    const std::string& hex = json.find("bytes")->string();
    const auto bytes = bytes_in(pixels);
    ASSERT_EQ(hex.size(), bytes.size() * 2);
    int others = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const int expected = std::stoi(hex.substr(at * 2, 2), nullptr, 16);
      EXPECT_LE(std::abs(expected - bytes[at]), 1);
      others += expected == bytes[at] ? 0 : 1;
    }
    EXPECT_LE(others, 3);
  }
}

TEST_F(AugmentTest, AutomaticOnesHaveTorchvisionsMagnitudes) {
  for (const Json& json : golden_.find("magnitudes")->array()) {
    SCOPED_TRACE(json.find("kind")->string());
    const AugmentKind kind = json.find("kind")->string() == "rand_augment"
                                 ? AugmentKind::rand_augment
                                 : AugmentKind::trivial_augment_wide;
    const auto bins = static_cast<int>(json.find("bins")->integer());
    const auto& by_change = json.find("by_change")->array();
    for (std::size_t change = 0; change < by_change.size(); ++change)
      for (std::size_t at = 0; at < by_change[change].array().size(); ++at)
        EXPECT_EQ(augment_magnitude(kind, change, bins, static_cast<int>(at),
                                    integer(json, "size", 0),
                                    integer(json, "size", 1)),
                  by_change[change].array()[at].number())
            << change << " " << at;
  }
}

TEST_F(AugmentTest, DrawsAreInTheirRangesAndDependOnTheSampleAlone) {
  const std::vector<Augment> augments = parsed(R"([
      {"rotation": {"degrees": [10, 20]}},
      {"affine": {"degrees": 5, "translate": [0.1, 0.2], "scale": [0.5, 2],
                  "shear": [1, 2, 3, 4]}},
      {"color_jitter": {"brightness": 0.4, "hue": 0.1}},
      {"random_erasing": {"p": 1}}])");
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    const std::vector<PixelChange> all = draws(augments, sample);
    ASSERT_EQ(all.size(), 5U);
    const auto& turn = all[0].numbers;
    EXPECT_TRUE(turn[0] >= 10 && turn[0] <= 20) << turn[0];
    const auto& of = all[1].numbers;
    EXPECT_LE(std::fabs(of[0]), 5);
    EXPECT_LE(std::fabs(of[1]), 22);
    EXPECT_LE(std::fabs(of[2]), 32);
    EXPECT_EQ(of[2], std::round(of[2]));
    EXPECT_TRUE(of[3] >= 0.5 && of[3] <= 2) << of[3];
    EXPECT_TRUE(of[4] >= 1 && of[4] <= 2 && of[5] >= 3 && of[5] <= 4);
    EXPECT_EQ(all[4].entry, 3U);
    const auto& erased = all[4].numbers;
    EXPECT_LE(erased[0] + erased[2], 160);
    EXPECT_LE(erased[1] + erased[3], 224);
    const std::vector<PixelChange> again = draws(augments, sample);
    for (std::size_t at = 0; at < all.size(); ++at)
      EXPECT_EQ(all[at].numbers, again[at].numbers);
  }
  EXPECT_NE(draws(augments, 0)[0].numbers, draws(augments, 1)[0].numbers);
}

TEST_F(AugmentTest, TrivialAugmentChoosesEachChangeEquallyOften) {
  const std::vector<Augment> augments = parsed(R"(["trivial_augment_wide"])");
  std::array<int, 17> counts{};
  constexpr int kSamples = 7000;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample)
    for (const PixelChange& change : draws(augments, sample))
      ++counts[static_cast<std::size_t>(change.change)];
  // 500 of each, 5 deviations; shears and moves are four.
  EXPECT_NEAR(counts[static_cast<std::size_t>(Change::affine)], 2000, 190);
  for (Change of : {Change::rotate, Change::hue, Change::equalize})
    EXPECT_NEAR(counts[static_cast<std::size_t>(of)],
                of == Change::hue ? 0 : 500, 110);
}

TEST_F(AugmentTest, WithPItIsDoneThatOften) {
  const std::vector<Augment> augments = parsed(R"([{"invert": {"p": 0.25}}])");
  std::size_t done = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample)
    done += draws(augments, sample).size();
  EXPECT_NEAR(static_cast<double>(done), 500, 97);
}

TEST_F(AugmentTest, ErasingWritesNumbersOfTheTensor) {
  Image image;
  image.height = 4;
  image.width = 5;
  image.dtype = Dtype::float32;
  const PixelChange change{.change = Change::erase, .numbers = {1, 2, 2, 3}};
  Augment augment;
  augment.value = {1, 2, 3};
  for (bool last : {false, true}) {
    image.channels_last = last;
    std::vector<float> tensor(60, -1.0F);
    erase(image, augment, change, Random(1, 0, 0, 0),
          reinterpret_cast<std::byte*>(tensor.data()));
    for (std::size_t y = 0; y < 4; ++y)
      for (std::size_t x = 0; x < 5; ++x)
        for (std::size_t c = 0; c < 3; ++c) {
          const bool inside = y >= 1 && y < 3 && x >= 2;
          EXPECT_EQ(tensor[last ? (y * 5 + x) * 3 + c : c * 20 + y * 5 + x],
                    inside ? static_cast<float>(c + 1) : -1.0F);
        }
  }
}

TEST_F(AugmentTest, EntriesThatCannotBe) {
  EXPECT_THAT(refused(R"(["mirror"])"), HasSubstr("name one of rotation"));
  EXPECT_THAT(refused(R"("rotation")"), HasSubstr("write a list"));
  EXPECT_THAT(refused(R"(["rotation"])"), HasSubstr("augment[0].degrees"));
  EXPECT_THAT(refused(R"([{"rotation": {"degrees": [9, 1]}}])"),
              HasSubstr("the smaller number first"));
  EXPECT_THAT(refused(R"([{"rotation": {"degree": 9}}])"),
              HasSubstr("degrees"));
  EXPECT_THAT(refused(R"([{"gaussian_blur": {"kernel_size": 4}}])"),
              HasSubstr("odd"));
  EXPECT_THAT(refused(R"([{"rand_augment": {"magnitude": 31}}])"),
              HasSubstr("below num_magnitude_bins"));
  EXPECT_THAT(refused(R"([{"rotation": {"degrees": 9, "fill": 1.5}}])"),
              HasSubstr("whole numbers"));
  EXPECT_THAT(refused(R"([{"random_erasing": {"value": "x"}}])"),
              HasSubstr("random"));
  EXPECT_EQ(refused(R"(["trivial_augment_wide", {"invert": {}}])"), "");
}

TEST_F(AugmentTest, WhatIsShownIsReadAsTheSame) {
  const Json shown = augments_json(parsed(
      R"([{"affine": {"degrees": 5, "shear": 3}}, "random_erasing",
          {"color_jitter": {"brightness": 0.4}}])"));
  EXPECT_EQ(augments_json(parse_augments(shown, "augment")), shown);
}

}  // namespace
}  // namespace penstock
