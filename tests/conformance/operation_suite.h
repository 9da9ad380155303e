#pragma once

#include "tests/conformance/device_suite.h"
#include "tests/conformance/drawn_operations.h"

/// What every device must make of the operations on images and spectrograms:
/// the bytes that run_on_host() gives. Included beside device_suite.h, of which
/// these are more tests.
namespace penstock::conformance {

class OperationSuite : public DeviceSuite {
 protected:
  /// The same, of its input in the device's memory or in pinned memory.
  void expect_right(const DrawnOperation& drawn, std::uint64_t seed) {
    std::unique_ptr<Stream> stream = device_->make_stream();
    const ByteVector in = random_bytes(drawn.in_bytes, seed);
    const ByteVector before = random_bytes(drawn.out_bytes, seed + 1);
    const ByteVector right = right_bytes(drawn, in, before);
    for (bool on_device : {true, false}) {
      Buffer from = on_device ? upload(*stream, in) : pinned(in);
      Buffer out = upload(*stream, before);
      drawn.with(
          from.data(), out.data(),
          [&](const DeviceOperation& operation) { stream->run(operation); });
      ASSERT_EQ(download(*stream, out), right)
          << "seed " << seed << (on_device ? "" : ", from pinned memory");
    }
  }

  void refused(const DeviceOperation& operation, const char* why) {
    try {
      device_->make_stream()->run(operation);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
      EXPECT_THAT(error.what(), testing::HasSubstr(why));
    }
  }
};

TEST_P(OperationSuite, ACastIsWhatTheHostGives) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed, 1, 0, 0);
    expect_right(drawn_cast(random), seed);
  }
}

TEST_P(OperationSuite, ACropIsWhatTheHostGives) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed, 2, 0, 0);
    expect_right(drawn_crop(random), seed);
  }
}

TEST_P(OperationSuite, AResizeIsWhatTheHostGives) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed, 4, 0, 0);
    expect_right(drawn_resize(random), seed);
  }
}

TEST_P(OperationSuite, AMaskIsWhatTheHostGives) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed, 3, 0, 0);
    expect_right(drawn_mask(random), seed);
  }
}

TEST_P(OperationSuite, AMoveIsWhatTheHostGives) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed, 5, 0, 0);
    expect_right(drawn_move(random), seed);
  }
}

// More than a launch takes, and the rows of another batch behind them.
TEST_P(OperationSuite, TakesManyWindowsAndBoxes) {
  constexpr std::size_t kMany = 20'000;
  std::unique_ptr<Stream> stream = device_->make_stream();
  ByteVector bytes = random_bytes(64, 5), right(kMany * 6);
  Buffer there = upload(*stream, bytes);
  Buffer out = upload(*stream, ByteVector(right.size()));
  std::vector<MaskBox> boxes;
  auto windows = [&](const std::byte* image) {
    std::vector<CropWindow> windows;
    for (std::size_t w = 0; w < kMany; ++w)
      windows.push_back({.image = image,
                         .height = 4,
                         .width = 8,
                         .top = static_cast<std::int32_t>(w % 3),
                         .left = static_cast<std::int32_t>(w % 6),
                         .flip = w % 2 == 0});
    return windows;
  };
  for (std::size_t w = 0; w < kMany; ++w)
    boxes.push_back({.row = static_cast<std::int64_t>(w),
                     .top = static_cast<std::int32_t>(w % 2),
                     .height = 1,
                     .width = 1});
  auto crop = [&](std::byte* to, const std::vector<CropWindow>& of) {
    return CropFlip{
        .out = to, .height = 2, .width = 3, .channels = 1, .windows = of};
  };
  auto mask = [&](std::byte* to) {
    return Mask{.out = to,
                .rows = static_cast<std::int64_t>(kMany),
                .height = 2,
                .width = 3,
                .element_bytes = 1,
                .value = 9,
                .boxes = boxes};
  };
  run_on_host(crop(right.data(), windows(bytes.data())));
  run_on_host(mask(right.data()));
  stream->run(crop(out.data(), windows(there.data())));
  stream->run(mask(out.data()));
  EXPECT_EQ(download(*stream, out), right);
}

// Some thousands of small ones, which are more than a launch takes, and two
// that are each more than the memory that a stream has for them.
TEST_P(OperationSuite, TakesManyResizesAndLargeOnes) {
  constexpr std::int32_t kMany = 20'000, kOne = 1 << kResizeBits;
  std::unique_ptr<Stream> stream = device_->make_stream();
  const ByteVector image = random_bytes(64, 6);
  Buffer there = upload(*stream, image);
  ByteVector numbers = random_bytes(256, 7);
  std::vector<std::int32_t> taps{0, 1, kOne, 2, 1, kOne / 2};
  const ResizeAxisTaps large{.at = taps.size(), .most = 300'000};
  taps.resize(large.at + large.numbers(1));
  taps[large.at] = 3;
  taps[large.at + 1] = 1;
  taps[large.at + 2] = kOne;
  auto resize = [&](const std::byte* from, std::byte* out,
                    std::vector<ResizeWindow>& windows) {
    for (std::int32_t w = 0; w < kMany; ++w)
      windows.push_back({.image = from,
                         .height = 8,
                         .width = 8,
                         .top = w % 5,
                         .left = w % 4,
                         .row = w,
                         .columns = {.at = 0, .most = 1},
                         .rows = {.at = 3, .most = 1}});
    windows[7].columns = windows[kMany - 1].rows = large;
    return Resize{.out = out,
                  .height = 1,
                  .width = 1,
                  .channels = 1,
                  .numbers = numbers,
                  .taps = taps,
                  .windows = windows};
  };
  ByteVector right(kMany);
  Buffer out = upload(*stream, ByteVector(right.size()));
  std::vector<ResizeWindow> on_host, on_device;
  run_on_host(resize(image.data(), right.data(), on_host));
  stream->run(resize(there.data(), out.data(), on_device));
  EXPECT_EQ(download(*stream, out), right);
}

/// Files of a format that holds an image unchanged.
inline void decode_copy(std::span<const std::byte> file, std::int32_t,
                        std::byte* image) {
  std::memcpy(image, file.data(), file.size());
}

// Among images that are there and rows of zeros, and one that is larger than
// the memory that a stream has for them.
TEST_P(OperationSuite, ResizesImagesThatTheHostDecodes) {
  constexpr std::int32_t kMany = 50, kOne = 1 << kResizeBits, kLines = 3000;
  static_assert(std::size_t{kLines} * kLines * 8 > kHostDecodedBytes);
  std::unique_ptr<Stream> stream = device_->make_stream();
  const ByteVector image = random_bytes(64 * 8, 6),
                   numbers = random_bytes(2048, 7);
  ByteVector large(std::size_t{kLines} * kLines * 8);
  large[(std::size_t{2} * kLines + 1) * 8] = std::byte{77};
  Buffer there = upload(*stream, image);
  const std::vector<std::int32_t> taps{1, 1, kOne, 2, 1, kOne};
  auto resize = [&](const std::byte* from, std::byte* out,
                    std::vector<ResizeWindow>& windows) {
    for (std::int32_t w = 0; w < kMany; ++w) {
      ResizeWindow window{.height = 8,
                          .width = 8,
                          .top = w % 5,
                          .left = w % 4,
                          .row = w,
                          .columns = {.at = 0, .most = 1},
                          .rows = {.at = 3, .most = 1}};
      if (w % 3 == 1) window.image = from;
      if (w % 3 == 2) window.file = image;
      window.host_decodes = true;
      windows.push_back(window);
    }
    windows[20].file = large;
    windows[20].height = windows[20].width = kLines;
    windows[20].top = windows[20].left = 0;
    return Resize{.out = out,
                  .height = 1,
                  .width = 1,
                  .channels = 8,
                  .numbers = numbers,
                  .taps = taps,
                  .windows = windows,
                  .decode = decode_copy};
  };
  ByteVector right = random_bytes(kMany * 8, 8);
  Buffer out = upload(*stream, right);
  std::vector<ResizeWindow> on_host, on_device;
  run_on_host(resize(image.data(), right.data(), on_host));
  stream->run(resize(there.data(), out.data(), on_device));
  EXPECT_EQ(download(*stream, out), right);
}

TEST_P(OperationSuite, OperationsOfAStreamFollowEachOther) {
  constexpr std::size_t kSide = 32, kPixels = kSide * kSide;
  std::unique_ptr<Stream> stream = device_->make_stream();
  const ByteVector images = random_bytes(4 * 3 * kPixels, 7);
  auto queue = [](const std::byte* in, std::byte* scratch, std::byte* out,
                  const std::function<void(const DeviceOperation&)>& run) {
    const std::vector<std::int64_t> rows{2, 0, 3};
    const std::vector<GatherField> fields{
        {in, 3 * kPixels, 3 * kPixels, scratch}};
    run(Gather{fields, rows});
    std::vector<CropWindow> windows(3);
    for (std::size_t w = 0; w < 3; ++w)
      windows[w] = {.image = scratch + w * 3 * kPixels,
                    .height = kSide,
                    .width = kSide,
                    .top = static_cast<std::int32_t>(w),
                    .left = 5,
                    .flip = w == 1};
    std::byte* cropped = scratch + 9 * kPixels;
    run(CropFlip{.out = cropped,
                 .height = 24,
                 .width = 24,
                 .channels = 3,
                 .windows = windows});
    const std::vector<Normalization> channels{{120, 60}, {110, 50}, {100, 40}};
    run(CastNormalize{.in = cropped,
                      .out = out,
                      .to = Dtype::bfloat16,
                      .rows = 3,
                      .pixels = 24 * 24,
                      .channels = channels,
                      .channels_first = true});
    const std::vector<MaskBox> boxes{
        {.row = 1, .top = 10, .height = 8, .width = 24}};
    run(Mask{.out = out,
             .rows = 3,
             .height = 72,
             .width = 24,
             .element_bytes = 2,
             .boxes = boxes});
  };
  ByteVector scratch(18 * kPixels), right(3 * 24 * 24 * 3 * 2);
  queue(images.data(), scratch.data(), right.data(),
        [](const DeviceOperation& operation) { run_on_host(operation); });
  Buffer there = upload(*stream, images);
  Buffer between = device_->allocate(scratch.size());
  Buffer out = device_->allocate(right.size());
  queue(there.data(), between.data(), out.data(),
        [&](const DeviceOperation& operation) { stream->run(operation); });
  EXPECT_EQ(download(*stream, out), right);
}

TEST_P(OperationSuite, AMistakeIsAnInternalErrorWhereItIsQueued) {
  Buffer memory = device_->allocate(1024);
  std::byte* at = memory.data();
  const std::vector<std::int64_t> below{0, -2};
  const GatherField field{at, 4, 4, at + 512};
  refused(Gather{{&field, 1}, below}, "below -1");
  const std::vector<Normalization> flat{{5, 0}}, many(129);
  refused(CastNormalize{.in = at, .out = at + 512, .rows = 1, .pixels = 1},
          "no channels");
  refused(
      CastNormalize{
          .in = at, .out = at + 512, .rows = 1, .pixels = 1, .channels = flat},
      "deviation");
  refused(
      CastNormalize{
          .in = at, .out = at + 512, .rows = 1, .pixels = 1, .channels = many},
      "too many");
  const CropWindow outside{.image = at, .height = 4, .width = 4, .left = 2};
  refused(CropFlip{.out = at + 512,
                   .height = 4,
                   .width = 3,
                   .channels = 1,
                   .windows = {&outside, 1}},
          "leaves its image");
  const MaskBox beyond{.row = 1, .height = 1, .width = 1};
  refused(
      Mask{
          .out = at, .rows = 1, .height = 1, .width = 1, .boxes = {&beyond, 1}},
      "leaves its row");
  refused(Mask{.out = at + 2, .rows = 1, .height = 1, .width = 1},
          "not aligned");
  MovedRow far{.from = at, .by = -3};
  Move move{
      .out = at + 512, .rows = 1, .height = 1, .width = 2, .moved = {&far, 1}};
  refused(move, "more than its width");
  far = {.from = at, .row = 1};
  refused(move, "or to none");
  far = {.from = at + 2};
  refused(move, "not aligned");
}

TEST_P(OperationSuite, SoIsAMistakeInAResize) {
  std::unique_ptr<Stream> stream = device_->make_stream();
  Buffer memory = device_->allocate(1024);
  std::byte* at = memory.data();
  const std::vector<std::byte> numbers(256);
  const std::vector<std::int32_t> taps{2, 2, 1 << 21, 1 << 21};
  ResizeWindow window{.image = at,
                      .height = 4,
                      .width = 4,
                      .columns = {.most = 2},
                      .rows = {.most = 2}};
  Resize resize{.out = at + 512,
                .height = 1,
                .width = 1,
                .channels = 1,
                .numbers = numbers,
                .taps = taps,
                .windows = {&window, 1}};
  stream->run(resize);
  stream->synchronize();
  window.left = 1;
  refused(resize, "taps of a window leave it");
  window = {.image = at, .height = 4, .width = 4};
  refused(resize, "or are not there");
  window.columns = window.rows = {.at = 1, .most = 2};
  refused(resize, "or are not there");
  window.top = 5;
  refused(resize, "leaves its image");
  window.top = 0;
  window.file = numbers;
  refused(resize, "that nobody decodes");
  window.file = {};
  resize.number_bytes = 3;
  refused(resize, "numbers of another size");
  resize.number_bytes = 4;
  refused(resize, "not the numbers of each");
}

}  // namespace penstock::conformance
