#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>

#include "penstock/dataset/fake/pictures_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "penstock/transforms/fake/photos.h"
#include "penstock/transforms/image/device_decode.h"
#include "tests/conformance/no_device.h"

// JPEG files that the device `cuda` decodes are nearly what the host makes of
// them: by nvJPEG of a GPU, or by that of the stand-in, which makes the same.

namespace penstock {
namespace {

/// Mean of the differences of bytes.
double difference(std::string_view a, std::string_view b) {
  EXPECT_EQ(a.size(), b.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    sum += std::abs(static_cast<unsigned char>(a[i]) -
                    static_cast<unsigned char>(b[i]));
  return static_cast<double>(sum) / static_cast<double>(a.size());
}

// Of a byte: where colours are smoothed in another way, and bits are rounded.
constexpr double kMostDifference = 2;

class DecodedPictures : public testing::Test {
 protected:
  void SetUp() override {
    try {
      cuda_ = open_device({.kind = "cuda"});
    } catch (const Error& error) {
      conformance::no_device(error.what());
    }
  }

  /// Each file as decoded, one behind the other, of images of one size
  /// every `step`th pixel of every `step`th line.
  struct Decode {
    Decode(const std::vector<std::string>& files, int width, int height,
           int step = 1)
        : width(width / step), height(height / step), step(step) {
      for (std::size_t byte = 0; byte < numbers.size(); ++byte)
        numbers[byte] = static_cast<std::byte>(byte % 256);
      const ResizeAxisTaps columns = every(this->width),
                           rows = every(this->height);
      for (const std::string& file : files)
        windows.push_back({.file = std::as_bytes(std::span(file)),
                           .height = height,
                           .width = width,
                           .row = std::ssize(windows),
                           .columns = columns,
                           .rows = rows});
    }
    ResizeAxisTaps every(int pixels) {
      const ResizeAxisTaps axis{.at = taps.size(), .most = 1};
      for (int p = 0; p < pixels; ++p) taps.push_back(p * step);
      taps.insert(taps.end(), static_cast<std::size_t>(pixels), 1);
      taps.insert(taps.end(), static_cast<std::size_t>(pixels),
                  1 << kResizeBits);
      return axis;
    }
    std::size_t bytes() const {
      return windows.size() * static_cast<std::size_t>(width) *
             static_cast<std::size_t>(height) * 3;
    }
    Resize to(std::byte* out) const {
      return {.out = out,
              .height = height,
              .width = width,
              .channels = 3,
              .numbers = numbers,
              .taps = taps,
              .windows = windows,
              .decode = decode_on_host};
    }

    const int width, height, step;
    std::array<std::byte, 768> numbers;
    std::vector<std::int32_t> taps;
    std::vector<ResizeWindow> windows;
  };

  static std::string on_host(const Decode& decode) {
    std::string out(decode.bytes(), '\0');
    run_on_host(decode.to(reinterpret_cast<std::byte*>(out.data())));
    return out;
  }
  std::string on_device(const Decode& decode) {
    const std::unique_ptr<Stream> stream = cuda_->make_stream();
    Buffer out = cuda_->allocate(decode.bytes());
    Buffer back = cuda_->allocate_pinned(decode.bytes());
    stream->run(decode.to(out.data()));
    stream->copy(back.data(), out.data(), back.size());
    stream->synchronize();
    return {reinterpret_cast<const char*>(back.data()), back.size()};
  }

  std::unique_ptr<Device> cuda_;
};

TEST_F(DecodedPictures, OfEachSamplingOfColoursAreNearlyThoseOfTheHost) {
  if (cuda_ == nullptr) return;
  for (const auto& [width, height] : {std::pair(500, 375), std::pair(641, 479),
                                      std::pair(16, 16), std::pair(1, 3)}) {
    Random random(7, 0, static_cast<std::uint64_t>(width), 0);
    const std::vector<std::uint8_t> first = photo(random, width, height),
                                    second = photo(random, width, height);
    for (const auto& [across, down] :
         {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2)}) {
      const std::vector<std::string> files{
          jpeg_file(first, width, height, across, down),
          jpeg_file(second, width, height, across, down)};
      const Decode decode(files, width, height, width > 100 ? 3 : 1);
      const double off = difference(on_device(decode), on_host(decode));
      std::printf("%d x %d, colours of %d x %d pixels: off by %.3f\n", width,
                  height, across, down, off);
      EXPECT_LT(off, kMostDifference);
    }
  }
}

// Some that are more than a stream has room for, several times.
TEST_F(DecodedPictures, OfALargeBatchAreEachWhereTheyBelong) {
  if (cuda_ == nullptr) return;
  constexpr int kWidth = 400, kHeight = 300, kPhotos = 5, kMany = 260;
  static_assert(std::size_t{kWidth} * kHeight * 3 * kMany > kDecodedBytes);
  Random random(8, 0, 0, 0);
  std::vector<std::string> photos, files;
  for (int i = 0; i < kPhotos; ++i)
    photos.push_back(photo_file(random, kWidth, kHeight));
  for (std::size_t i = 0; i < kMany; ++i)
    files.push_back(photos[i * i % kPhotos]);
  const Decode decode(files, kWidth, kHeight, 8);
  const std::string made = on_device(decode), right = on_host(decode);
  const std::size_t each = right.size() / kMany;
  for (std::size_t i = 0; i < kMany; ++i)
    EXPECT_LT(difference(std::string_view(made).substr(i * each, each),
                         std::string_view(right).substr(i * each, each)),
              kMostDifference)
        << i;
}

TEST_F(DecodedPictures, OfALoaderAreNearlyThoseOfTheHost) {
  if (cuda_ == nullptr) return;
  PicturesDataset pictures(PENSTOCK_TEST_DATA "/images");
  pictures.files = true;
  pictures.settings = R"("size": 64, "resize": 80)";
  Random random(9, 0, 0, 0);
  std::int64_t id = std::ssize(pictures.table.rows);
  for (int i = 0; i < 10; ++i)
    pictures.table.rows.push_back(
        {id++, photo_file(random, 200 + 40 * i, 300 - 20 * i)});
  const LoaderOptions loading{
      .tail = Tail::pad, .batch_size = 32, .workers = 2, .batches = 12};
  const std::unique_ptr<Device> cpu = open_for_test("cpu");
  const std::vector<SeenBatch> right =
      seen_batches(pictures.prepare("host", *cpu), loading, *cpu);
  const auto set = pictures.prepare("device", *cuda_);
  ASSERT_EQ(set->facts().device_fields_of(Side::train).size(), 1U);
  const std::vector<SeenBatch> made = seen_batches(set, loading, *cuda_);
  ASSERT_EQ(made.size(), right.size());
  for (std::size_t b = 0; b < made.size(); ++b) {
    EXPECT_EQ(made[b].ids, right[b].ids);
    EXPECT_LT(difference(made[b].bytes.at("x"), right[b].bytes.at("x")),
              kMostDifference);
  }
}

}  // namespace
}  // namespace penstock
