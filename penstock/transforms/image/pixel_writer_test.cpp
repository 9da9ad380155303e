#include "penstock/transforms/image/pixel_writer.h"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>

#include "penstock/transforms/image/split_channels.h"

namespace penstock {
namespace {

TEST(PixelWriterTest, ChannelsOfRowsOfAnyLengthAreSplit) {
  for (std::size_t width : {1U, 15U, 16U, 17U, 40U, 64U})
    for (bool mirrored : {false, true}) {
      std::vector<std::uint8_t> rgb(width * 3), planes(width * 3, 0xDB);
      for (std::size_t at = 0; at < rgb.size(); ++at)
        rgb[at] = static_cast<std::uint8_t>(at * 7);
      split_channels(rgb.data(), width, mirrored, width, planes.data());
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_EQ(planes[c * width + (mirrored ? width - 1 - x : x)],
                    rgb[x * 3 + c]);
    }
}

TEST(PixelWriterTest, HasTheNumbersOfEachByte) {
  Image image{
      .dtype = Dtype::float32, .mean = {0.5, 0, 0}, .std = {0.5, 1, 0.1}};
  const std::vector<std::byte> bytes = PixelWriter(image).numbers();
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  ASSERT_EQ(numbers.size(), 768U);
  EXPECT_EQ(numbers[0], -1);
  EXPECT_EQ(numbers[255], 1);
  EXPECT_EQ(numbers[256 + 255], 1);
  EXPECT_EQ(numbers[512 + 51], (51 / 255.0F) / 0.1F);
  image = {.mode = PictureMode::index, .dtype = Dtype::int64};
  const std::vector<std::byte> classes = PixelWriter(image).numbers();
  ASSERT_EQ(classes.size(), 256U * 8);
  EXPECT_EQ(classes[8 * 7], std::byte{7});
  EXPECT_EQ(classes[8 * 7 + 1], std::byte{0});
}

// numbers() are what a division gives, and float32 is made by products.
TEST(PixelWriterTest, FloatsAreWrittenToTheLastBit) {
  const std::vector<std::vector<double>> means = {
      {}, {0.485, 0.456, 0.406}, {0.5, 0, 0.1307}};
  const std::vector<std::vector<double>> stds = {
      {}, {0.229, 0.224, 0.225}, {0.5, 1, 0.3081}};
  for (std::size_t of = 0; of < means.size(); ++of)
    for (int width : {1, 7, 24, 600, 8000, 8001})  // large ones: past caches
      for (bool flipped : {false, true}) {
        const PixelWriter writer(
            Image{.dtype = Dtype::float32, .mean = means[of], .std = stds[of]});
        const std::vector<std::byte> bytes = writer.numbers();
        std::vector<float> numbers(bytes.size() / sizeof(float));
        std::memcpy(numbers.data(), bytes.data(), bytes.size());
        Pixels pixels;
        pixels.reshape(width, 3, PictureMode::rgb);
        for (int y = 0; y < 3; ++y)
          for (std::size_t at = 0; at < pixels.row_bytes(); ++at)
            pixels.row(y)[at] =
                static_cast<std::uint8_t>(at * 5 + static_cast<std::size_t>(y));
        const auto wide = static_cast<std::size_t>(width);
        std::vector<float> room(wide * 9 + 16, -9);
        void* out_at = room.data();  // aligned as tensors of batches are
        std::size_t bytes_left = room.size() * sizeof(float);
        const auto* out = static_cast<const float*>(
            std::align(64, wide * 9 * sizeof(float), out_at, bytes_left));
        writer.write(pixels, flipped, static_cast<std::byte*>(out_at));
        for (std::size_t c = 0; c < 3; ++c)
          for (std::size_t y = 0; y < 3; ++y)
            for (std::size_t x = 0; x < wide; ++x) {
              const std::size_t from = flipped ? wide - 1 - x : x;
              const std::size_t byte =
                  pixels.row(static_cast<int>(y))[from * 3 + c];
              ASSERT_EQ(out[(c * 3 + y) * wide + x], numbers[c * 256 + byte]);
            }
      }
}

TEST(PixelWriterTest, LayoutsAndMirroredPictures) {
  Pixels two;
  two.reshape(2, 1, PictureMode::rgb);
  const std::uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
  std::copy(std::begin(bytes), std::end(bytes), two.row(0));
  auto written = [&](bool last, bool flipped) {
    std::vector<std::uint8_t> out(6);
    Image image;
    image.channels_last = last;
    PixelWriter(image).write(two, flipped,
                             reinterpret_cast<std::byte*>(out.data()));
    return out;
  };
  using testing::ElementsAre;
  EXPECT_THAT(written(false, false), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(written(false, true), ElementsAre(4, 1, 5, 2, 6, 3));
  EXPECT_THAT(written(true, false), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(written(true, true), ElementsAre(4, 5, 6, 1, 2, 3));
}

}  // namespace
}  // namespace penstock
