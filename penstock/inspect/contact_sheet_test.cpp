#include "penstock/inspect/contact_sheet.h"

#include <gmock/gmock.h>

namespace penstock {
namespace {

using testing::HasSubstr;

class ContactSheetTest : public testing::Test {
 protected:
  std::vector<NamedTensor> tensors() {
    auto at = [](auto& numbers) {
      return reinterpret_cast<std::byte*>(numbers.data());
    };
    return {{"x", {at(pixels_), Dtype::uint8, {2, 3, 1, 2}}},
            {"label", {at(labels_), Dtype::int64, {2}}},
            {"x_draw", {at(draws_), Dtype::int32, {2, 2}}}};
  }
  std::vector<std::uint8_t> pixels_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<std::int64_t> labels_ = {1, 0};
  std::vector<std::int32_t> draws_ = {4, 5, 6, 7};
};

TEST_F(ContactSheetTest, PicturesStandBesideOneAnother) {
  const std::string png = ContactSheet(tensors()).png();
  // Two pictures of 2 x 1 above labels of 5, gaps of 2 about all: 10 x 14;
  // deflate keeps the bytes as they are: 0 and the pixels of line 2.
  EXPECT_THAT(png, testing::StartsWith("\x89PNG\r\n\x1A\n"));
  EXPECT_EQ(png.substr(16, 8), std::string("\0\0\0\x0A\0\0\0\x0E", 8));
  const std::string white(6, '\xFF');
  EXPECT_THAT(png, HasSubstr(std::string(1, '\0') + white + "\1\3\5\2\4\6" +
                             white + "\7\x09\x0B\x08\x0A\x0C" + white));
}

TEST_F(ContactSheetTest, LabelsStandBelowPictures) {
  pixels_.assign(2 * 3 * 8, 255);
  std::vector<NamedTensor> all = tensors();
  all[0].view.shape = {2, 3, 1, 8};
  const std::string png = ContactSheet(all, {{"label", {"LI", "-"}}}).png();
  // The third line of letters: a dash of class 1 below the first picture.
  const std::string white = std::string(3, '\xFF'), black(3, '\0');
  std::string line(1, '\0');
  for (char dot : std::string("..###.......#....#...."))
    line += dot == '#' ? black : white;
  EXPECT_THAT(png, HasSubstr(line));
}

TEST_F(ContactSheetTest, ThePageHasLabelsAndDraws) {
  const std::string page =
      ContactSheet(tensors(), {{"label", {"ant", "<bee>"}}}).html();
  EXPECT_THAT(page, HasSubstr("label &lt;bee&gt;, x_draw 4 5"));
  EXPECT_THAT(page, HasSubstr("label ant, x_draw 6 7"));
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,iVBORw0KGgo"));
}

TEST_F(ContactSheetTest, ABadPictureIsNamedBesideTheOthers) {
  const std::string page =
      ContactSheet(tensors(), {}, {{1, "'b.jpg': it is cut off"}}).html();
  EXPECT_THAT(page, HasSubstr("label 1, x_draw 4 5"));
  EXPECT_THAT(page,
              HasSubstr("<figcaption>bad: &#39;b.jpg&#39;: it is cut off<"));
}

TEST_F(ContactSheetTest, WhatCannotBeShownIsNamed) {
  auto code_of = [](auto call) {
    try {
      call();
    } catch (const Error& error) {
      return error.parts().code;
    }
    return std::string();
  };
  EXPECT_EQ(code_of([&] { ContactSheet({tensors()[1]}); }), "images.show");
  EXPECT_EQ(code_of([&] { ContactSheet(tensors()).write("a.bmp"); }),
            "images.sheet");
}

}  // namespace
}  // namespace penstock
