#include "penstock/transforms/image/device_decode.h"

#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "penstock/base/random.h"
#include "penstock/transforms/image/decoder.h"
#include "penstock/transforms/image/test_pictures.h"

namespace penstock {
namespace {

using test_pictures::bytes_of;
using test_pictures::Golden;

class DeviceDecode : public testing::Test {
 protected:
  static bool takes(const std::string& file) {
    PictureHeader header;
    return read_header(bytes_of(file), header).empty() &&
           device_decodes(bytes_of(file), header);
  }
  /// A copy of 420_b.jpg, whose bytes from `at` behind `marker` on are others.
  std::string changed(std::string_view marker, std::size_t at,
                      std::string_view with) const {
    std::string file = golden_.files.at("420_b.jpg");
    file.replace(file.find(marker) + at, with.size(), with);
    return file;
  }

  const Golden golden_{PENSTOCK_TEST_DATA "/images"};
};

// What Pillow calls 4:1:1 is 4:2:0.
TEST_F(DeviceDecode, TakesBaselineFilesThatAreShownAsTheyAreStored) {
  std::set<std::string> taken;
  for (const auto& [name, file] : golden_.files)
    if (takes(file)) taken.insert(name);
  EXPECT_THAT(taken, testing::UnorderedElementsAre(
                         "411_b.jpg", "420_b.jpg", "422_b.jpg", "444_b.jpg",
                         "exif_1.jpg", "odd_16x16.jpg", "odd_1x1.jpg",
                         "odd_1x33.jpg", "odd_31x32.jpg", "odd_33x1.jpg",
                         "odd_7x5.jpg", "restarts.jpg"));
}

TEST_F(DeviceDecode, LeavesColoursOfOtherKindsToTheHost) {
  constexpr std::string_view kFrame = "\xFF\xC0", kJfif = "\xFF\xE0";
  ASSERT_TRUE(takes(changed(kJfif, 4, "JFIF")));
  // Without the marker, the numbers of the components tell.
  EXPECT_TRUE(takes(changed(kJfif, 4, "none")));
  std::string rgb = changed(kJfif, 4, "none");
  for (std::size_t c = 0; c < 3; ++c)
    rgb[rgb.find(kFrame) + 10 + 3 * c] = "RGB"[c];
  EXPECT_FALSE(takes(rgb));
  // Adobe's marker, with and without a transform.
  std::string adobe(
      "\xFF\xEE\0\x0E"
      "Adobe\0d\0\0\0\0\0",
      16);
  std::string file = golden_.files.at("420_b.jpg");
  EXPECT_FALSE(takes(file.substr(0, 2) + adobe + file.substr(2)));
  adobe.back() = 1;
  EXPECT_TRUE(takes(file.substr(0, 2) + adobe + file.substr(2)));
}

TEST_F(DeviceDecode, TakesNothingWhoseSegmentsAreNotAsTheyShouldBe) {
  const std::string file = golden_.files.at("420_b.jpg");
  EXPECT_FALSE(takes(file.substr(0, 2) + '\0' + file.substr(2)));
  EXPECT_FALSE(takes(changed("\xFF\xDB", 2, "\xFF\xFF")));
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed, 0, 0, 0);
    std::string damaged = file;
    for (int i = 0; i < 3; ++i)
      damaged[random.below(700) % damaged.size()] =
          static_cast<char>(random.below(256));
    if (random.below(3) == 0) damaged.resize(random.below(damaged.size()));
    PictureHeader header;
    read_header(bytes_of(damaged), header);
    device_decodes(bytes_of(damaged), header);  // reads nothing beyond it
  }
}

TEST_F(DeviceDecode, TheHostTurnsWhatItDecodes) {
  const std::unique_ptr<PictureDecoder> decoder = make_decoder();
  for (const auto& [name, file] : golden_.files) {
    SCOPED_TRACE(name);
    PictureHeader header;
    if (!read_header(bytes_of(file), header).empty()) continue;
    const PictureBox whole{0, 0, header.width, header.height};
    Pixels stored, shown;
    ASSERT_EQ(decoder->decode(bytes_of(file), header, whole, PictureMode::rgb,
                              stored),
              "");
    turn(stored, header.orientation, shown);
    const std::size_t bytes =
        shown.row_bytes() * static_cast<std::size_t>(shown.height);
    std::vector<std::byte> image(bytes);
    decode_on_host(bytes_of(file), 3, image.data());
    EXPECT_EQ(std::memcmp(image.data(), shown.row(0), bytes), 0);
  }
}

TEST_F(DeviceDecode, AnImageThatCannotBeDecodedStaysAsItIs) {
  std::byte before{7};
  decode_on_host(bytes_of("no picture"), 3, &before);
  EXPECT_EQ(before, std::byte{7});
}

}  // namespace
}  // namespace penstock
