// Decoded and resized pictures are the bytes that Pillow makes of them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "penstock/base/hash.h"
#include "penstock/base/random.h"
#include "penstock/transforms/image/decoder.h"
#include "penstock/transforms/image/resize.h"
#include "penstock/transforms/image/test_pictures.h"

namespace penstock {
namespace {

using test_pictures::bytes_of;

class PillowTest : public testing::Test {
 protected:
  /// A part of a picture as displayed.
  Pixels decoded(const std::string& file, const PictureBox& box,
                 PictureMode mode) {
    PictureHeader header = header_of(file);
    Pixels stored, shown;
    EXPECT_EQ(decoder_->decode(bytes_of(file), header, header.stored(box), mode,
                               stored),
              "");
    turn(stored, header.orientation, shown);
    return shown;
  }
  Pixels decoded(const std::string& file, PictureMode mode) {
    const PictureHeader header = header_of(file);
    return decoded(file, {0, 0, header.shown_width(), header.shown_height()},
                   mode);
  }
  static PictureHeader header_of(const std::string& file) {
    PictureHeader header;
    EXPECT_EQ(read_header(bytes_of(file), header), "");
    return header;
  }
  static std::string hash_of(const Pixels& pixels) {
    Sha256 hash;
    for (int y = 0; y < pixels.height; ++y)
      hash.add(std::as_bytes(std::span(pixels.row(y), pixels.row_bytes())));
    return hash.hex();
  }
  static int number(const Json& list, std::size_t at) {
    return static_cast<int>(list.array()[at].number());
  }

  const test_pictures::Golden golden_{PENSTOCK_TEST_DATA "/images"};
  std::unique_ptr<PictureDecoder> decoder_ = make_decoder();
};

TEST_F(PillowTest, EveryKindOfPictureHasItsBytes) {
  ASSERT_GT(golden_.files.size(), 30U);
  for (const auto& [name, file] : golden_.files) {
    SCOPED_TRACE(name);
    const Json& expected = golden_.of(name);
    const Pixels rgb = decoded(file, PictureMode::rgb);
    EXPECT_EQ(rgb.width, number(*expected.find("size"), 0));
    EXPECT_EQ(rgb.height, number(*expected.find("size"), 1));
    EXPECT_EQ(hash_of(rgb), expected.find("rgb")->string());
    EXPECT_EQ(hash_of(decoded(file, PictureMode::grey)),
              expected.find("grey")->string());
  }
}

TEST_F(PillowTest, APartIsThatPartOfTheWhole) {
  Random random(17, 0, 0, 0);
  auto below = [&](int n) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(n)));
  };
  for (const auto& [name, file] : golden_.files) {
    SCOPED_TRACE(name);
    const Pixels whole = decoded(file, PictureMode::rgb);
    for (int draw = 0; draw < 60; ++draw) {
      PictureBox box{.width = 1 + below(whole.width),
                     .height = 1 + below(whole.height)};
      box.left = below(whole.width - box.width + 1);
      box.top = below(whole.height - box.height + 1);
      const Pixels part = decoded(file, box, PictureMode::rgb);
      ASSERT_EQ(part.width, box.width);
      for (int y = 0; y < box.height; ++y)
        ASSERT_EQ(
            std::memcmp(part.row(y), whole.row(box.top + y) + box.left * 3,
                        part.row_bytes()),
            0)
            << box.left << " " << box.top << " " << box.width << " "
            << box.height;
    }
  }
}

TEST_F(PillowTest, AResizedCropHasItsBytes) {
  const std::map<std::string, Interpolation> filters = {
      {"nearest", Interpolation::nearest},
      {"bilinear", Interpolation::bilinear},
      {"bicubic", Interpolation::bicubic},
      {"lanczos", Interpolation::lanczos}};
  for (const auto& [name, file] : golden_.files)
    for (const Json& part : golden_.of(name).find("parts")->array()) {
      const std::string& filter = part.find("filter")->string();
      SCOPED_TRACE(name + " " + filter);
      const Json& crop = *part.find("crop");
      const Json& size = *part.find("size");
      const Pixels from = decoded(
          file,
          {number(crop, 0), number(crop, 1), number(crop, 2), number(crop, 3)},
          PictureMode::rgb);
      ResizeTaps columns, rows;
      make_taps(filters.at(filter),
                ResizeAxis::whole(from.width, number(size, 0)), columns);
      make_taps(filters.at(filter),
                ResizeAxis::whole(from.height, number(size, 1)), rows);
      for (ResizeCode code : resize_codes()) {
        Pixels resized;
        Resizer(code).resize(from.view(), 0, 0, columns, rows, resized);
        EXPECT_EQ(hash_of(resized), part.find("sha256")->string());
      }
    }
}

class ResizerCodes : public testing::TestWithParam<ResizeCode> {};

TEST_P(ResizerCodes, MakesTheBytesOfPlainCode) {
  if (!std::ranges::count(resize_codes(), GetParam()))
    GTEST_SKIP() << "this processor does not run it";
  Random random(1, 0, 0, 0);
  auto below = [&](int end) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(end)));
  };
  for (int round = 0; round < 200; ++round) {
    Pixels from;
    from.reshape(1 + below(300), 1 + below(90),
                 below(5) == 0 ? PictureMode::grey : PictureMode::rgb);
    for (int y = 0; y < from.height; ++y)
      for (std::size_t x = 0; x < from.row_bytes(); ++x)
        from.row(y)[x] = static_cast<std::uint8_t>(below(256));
    ResizeTaps columns, rows;
    if (round % 2 == 0) columns.bits = rows.bits = ResizeTaps::kFewBits;
    ResizeAxis axis = ResizeAxis::whole(from.width, 1 + below(120));
    axis.first = below(axis.out);  // a part of it
    axis.count = 1 + below(axis.out - axis.first);
    const auto by = static_cast<Interpolation>(below(4));
    make_taps(by, axis, columns);
    make_taps(by, ResizeAxis::whole(from.height, 1 + below(60)), rows);
    auto resized = [&](ResizeCode code) {
      Pixels out;
      Resizer(code).resize(from.view(), 0, 0, columns, rows, out);
      return std::vector<std::uint8_t>(
          out.row(0),
          out.row(0) + out.row_bytes() * static_cast<std::size_t>(out.height));
    };
    ASSERT_EQ(resized(GetParam()), resized(ResizeCode::plain));
  }
}
INSTANTIATE_TEST_SUITE_P(All, ResizerCodes,
                         testing::Values(ResizeCode::avx2, ResizeCode::avx512),
                         [](const auto& of) {
                           return of.param == ResizeCode::avx2 ? "avx2"
                                                               : "avx512";
                         });

TEST_F(PillowTest, WeightsOfFewBitsAreOffByOneAndTheSameInAnyCode) {
  const Pixels from = decoded(golden_.files.at("rgb.png"), PictureMode::rgb);
  for (Interpolation by : {Interpolation::nearest, Interpolation::bilinear,
                           Interpolation::bicubic, Interpolation::lanczos})
    for (int width : {5, 17, 90})
      for (int height : {4, 31, 70}) {
        ResizeTaps columns, rows;
        auto resized = [&](int bits, ResizeCode code) {
          columns.bits = rows.bits = bits;
          make_taps(by, ResizeAxis::whole(from.width, width), columns);
          make_taps(by, ResizeAxis::whole(from.height, height), rows);
          Pixels out;
          Resizer(code).resize(from.view(), 0, 0, columns, rows, out);
          std::vector<int> bytes;
          for (int y = 0; y < height; ++y)
            bytes.insert(bytes.end(), out.row(y), out.row(y) + out.row_bytes());
          return bytes;
        };
        const std::vector<int> exact =
            resized(ResizeTaps::kBits, ResizeCode::plain);
        const std::vector<int> few =
            resized(ResizeTaps::kFewBits, ResizeCode::plain);
        for (ResizeCode code : resize_codes())
          EXPECT_EQ(resized(ResizeTaps::kFewBits, code), few);
        // Each of two passes rounds, and the other one may come first.
        for (std::size_t at = 0; at < exact.size(); ++at)
          ASSERT_NEAR(few[at], exact[at], 3);
      }
}

// What is damaged, and what becomes of it, does not depend on the part.
TEST_F(PillowTest, DamagedFilesAreRefusedOrDecoded) {
  const char* wished = std::getenv("PENSTOCK_TEST_DAMAGES");
  const int times = wished == nullptr ? 20 : std::atoi(wished);
  Random random(18, 0, 0, 0);
  int refused = 0, read = 0;
  Pixels pixels;
  for (const auto& [name, file] : golden_.files)
    for (int time = 0; time < times; ++time) {
      std::string damaged = file;
      const std::uint64_t blows = 1 + random.below(3);
      for (std::uint64_t blow = 0; blow < blows && !damaged.empty(); ++blow) {
        const auto at = static_cast<std::size_t>(random.below(damaged.size()));
        switch (random.below(4)) {
          case 0:
            damaged.resize(at);
            break;
          case 1:
            damaged.erase(at, 1 + random.below(16));
            break;
          case 2:
            damaged.insert(at, 1 + random.below(16), '\xFF');
            break;
          default:
            damaged[at] = static_cast<char>(random.below(256));
        }
      }
      PictureHeader header;
      std::string why = read_header(bytes_of(damaged), header);
      constexpr std::int64_t kEnough = 1 << 22;  // of pixels, for a test
      if (std::int64_t{header.width} * header.height > kEnough) continue;
      if (why.empty()) {
        const PictureBox whole{0, 0, header.width, header.height};
        why = decoder_->decode(bytes_of(damaged), header, whole,
                               PictureMode::rgb, pixels);
        const PictureBox corner{0, 0, 1, 1};
        const std::string other = decoder_->decode(
            bytes_of(damaged), header, corner, PictureMode::rgb, pixels);
        EXPECT_EQ(other.empty(), why.empty()) << name << ": " << why << other;
      }
      ++(why.empty() ? read : refused);
    }
  EXPECT_GT(refused, 0);
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace penstock
