#include "penstock/transforms/image/image.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "penstock/base/half.h"
#include "penstock/base/held_memory.h"
#include "penstock/transforms/image/kept_picture.h"
#include "penstock/transforms/image/picture_header.h"
#include "penstock/transforms/image/test_pictures.h"
#include "penstock/transforms/image/view.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

using test_pictures::bytes_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string why_of(const std::string& file) {
  PictureHeader header;
  return read_header(bytes_of(file), header);
}

std::string golden_file(const std::string& name) {
  return test_pictures::read_file(
      std::filesystem::path(PENSTOCK_TEST_DATA "/images") / name);
}

TEST(PictureHeaderTest, SaysWhatAFileIsThatIsNotRead) {
  using namespace std::string_literals;
  EXPECT_THAT(why_of(""), HasSubstr("empty"));
  EXPECT_THAT(why_of("<html>"), HasSubstr("begins with 3C 68 74 6D"));
  EXPECT_THAT(why_of("GIF89a  "), HasSubstr("GIF file is cut off"));
  EXPECT_THAT(why_of("II*\0        "s), HasSubstr("TIFF"));
  EXPECT_THAT(why_of("\0\0\0\x1C"
                     "ftypheic"s),
              HasSubstr("HEIC"));
  EXPECT_THAT(why_of("\0\0\0\x1C"
                     "ftypavif"s),
              HasSubstr("AVIF"));
  EXPECT_THAT(why_of("BM\x08\0\0\0\0\0"s), HasSubstr("BMP"));
  EXPECT_THAT(why_of("P6\n2 2\n255\n"), HasSubstr("PBM, PGM or PPM"));
}

TEST(PictureHeaderTest, SeesWhereAFileIsCutOff) {
  for (const char* name :
       {"420_b.jpg", "420_p.jpg", "rgb.png", "lossy.webp", "colours.gif"}) {
    const std::string whole = golden_file(name);
    EXPECT_EQ(why_of(whole), "") << name;
    EXPECT_THAT(why_of(whole.substr(0, whole.size() / 2)), HasSubstr("cut off"))
        << name;
  }
  EXPECT_EQ(why_of(golden_file("420_b.jpg") + "what a camera adds"), "");
}

TEST(PictureHeaderTest, RefusesABombFromItsHeader) {
  std::string bomb = golden_file("420_b.jpg");
  const std::size_t frame = bomb.find("\xFF\xC0");
  ASSERT_NE(frame, bomb.npos);
  bomb.replace(frame + 5, 4, "\xEA\x60\xEA\x60");  // 60000 x 60000
  EXPECT_THAT(why_of(bomb), HasSubstr("60000 x 60000 pixels"));
  // 178,956,970 x 1: as many pixels as are read, in one line.
  const std::string header("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  const std::string line = header + std::string("\x0A\xAA\xAA\xAA", 4) +
                           std::string("\0\0\0\1\b\2\0\0\0", 9) +
                           std::string(4, '\0') +
                           std::string("\0\0\0\0IEND\xAE\x42\x60\x82", 12);
  EXPECT_THAT(why_of(line), HasSubstr("a side may have at most 65535"));
}

TEST(PictureHeaderTest, FindsTheOrientation) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    PictureHeader header;
    read_header(
        bytes_of(golden_file("exif_" + std::to_string(orientation) + ".jpg")),
        header);
    EXPECT_EQ(header.orientation, orientation);
  }
}

std::string big_endian(std::size_t value) {
  std::string bytes;
  for (int bits = 24; bits >= 0; bits -= 8)
    bytes += static_cast<char>(value >> bits & 0xff);
  return bytes;
}

/// As zlib stores what it does not compress.
std::string stored_by_zlib(const std::string& text) {
  std::size_t a = 1, b = 0;
  for (const char c : text) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<std::uint16_t>(text.size());
  const auto other = static_cast<std::uint16_t>(~size);
  std::string bytes = "\x78\x01\x01";
  for (const std::uint16_t number : {size, other})
    bytes.append(1, static_cast<char>(number & 0xff))
        .append(1, static_cast<char>(number >> 8));
  return bytes + text + big_endian(b << 16 | a);
}

/// "rgb.png" with one more chunk behind IHDR.
std::string png_with(const std::string& kind, const std::string& data) {
  std::string png = golden_file("rgb.png");
  return png.insert(
      33, big_endian(data.size()) + kind + data + std::string(4, '\0'));
}

int orientation_of(const std::string& png) {
  PictureHeader header;
  EXPECT_EQ(read_header(bytes_of(png), header), "");
  return header.orientation;
}

// As ImageMagick wrote EXIF data, and Pillow reads them.
TEST(PictureHeaderTest, FindsTheOrientationInARawProfileOfPng) {
  using namespace std::string_literals;
  const std::string tiff =
      "4d4d002a00000008\n0001011200030000000100\n0600000000\n0000";
  const std::string name = "Raw profile type exif\0"s;
  for (const std::string& begin : {""s, "457869660000"s}) {
    const std::string text = "\nexif\n      34\n" + begin + tiff + "\n";
    const std::string packed = stored_by_zlib(text);
    EXPECT_EQ(orientation_of(png_with("tEXt", name + text)), 6);
    EXPECT_EQ(orientation_of(png_with("zTXt", name + "\0"s + packed)), 6);
    EXPECT_EQ(orientation_of(png_with("iTXt", name + "\0\0\0\0"s + text)), 6);
    EXPECT_EQ(orientation_of(png_with("iTXt", name + "\1\0en\0\0"s + packed)),
              6);
  }
  const std::string text = "\nexif\n      34\n" + tiff;
  for (const std::string& damaged :
       {name, name + "\nexif", name + text + "0", name + text + "xx",
        "Raw profile type xmp\0"s + text})
    EXPECT_EQ(orientation_of(png_with("tEXt", damaged)), 1);
  EXPECT_EQ(orientation_of(png_with("zTXt", name + "\0"s + text)), 1);
  EXPECT_EQ(orientation_of(png_with("iTXt", name)), 1);
  EXPECT_EQ(orientation_of(png_with("iTXt", name + "\1")), 1);
}

class ViewTest : public testing::Test {
 protected:
  View view(int width, int height, std::uint64_t sample, bool train = true) {
    return view_of(image_, train ? image_.train : image_.val, width, height,
                   Random(1, 0, sample, 0), Random(1, 0, sample, 1), train);
  }
  Image image_{.train = Framing::random_resized_crop, .flip = 0.5};
};

TEST_F(ViewTest, ByDefaultBothSidesGetTheMiddleAndNothingIsDrawn) {
  image_ = Image();
  const auto held_out = draws_of(view(500, 375, 0, false));
  for (std::uint64_t sample = 0; sample < 50; ++sample)
    EXPECT_EQ(draws_of(view(500, 375, sample)), held_out);
}

TEST_F(ViewTest, RandomCropsHaveAreasAndRatiosInTheirRanges) {
  double areas = 0;
  int flipped = 0;
  constexpr int kSamples = 2000;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const View of = view(500, 375, sample);
    EXPECT_GE(of.crop.left, 0);
    EXPECT_LE(of.crop.left + of.crop.width, 500);
    EXPECT_LE(of.crop.top + of.crop.height, 375);
    const double ratio = static_cast<double>(of.crop.width) / of.crop.height;
    EXPECT_GT(ratio, 0.73);
    EXPECT_LT(ratio, 1.37);
    areas += of.crop.width * of.crop.height / (500.0 * 375.0);
    flipped += of.flipped ? 1 : 0;
  }
  // What torchvision's get_params() gives on 200,000 draws, and 5 deviations of
  // the mean.
  EXPECT_NEAR(areas / kSamples, 0.4328, 0.028);
  EXPECT_NEAR(flipped, kSamples / 2, 112);
}

TEST_F(ViewTest, ALongPictureGivesItsMiddle) {
  const View of = view(1000, 10, 3);
  EXPECT_EQ(of.crop.height, 10);
  EXPECT_EQ(of.crop.width, 13);
  EXPECT_EQ(of.crop.left, 493);
}

TEST_F(ViewTest, TheOtherSideTakesTheMiddleAndIsNeverMirrored) {
  image_.flip = 1;
  const View of = view(500, 375, 0, false);
  EXPECT_FALSE(of.flipped);
  EXPECT_EQ(of.columns.out, 341);
  EXPECT_EQ(of.rows.out, 256);
  EXPECT_EQ(of.columns.first, 58);  // 58.5, to the even one
  EXPECT_EQ(of.rows.first, 16);
}

class ImageFieldTest : public testing::Test {
 protected:
  Field field(const std::string& settings) {
    return parse_fields(
        Json::parse(R"({"x": {"image": )" + settings + "}}", "test"),
        "fields")[0];
  }
  std::string refused(const std::string& settings) {
    try {
      field(settings);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  /// Parses and encodes files; what is wrong with any.
  std::vector<RowFault> store(const Field& of,
                              const std::vector<std::string>& files) {
    Block block;
    block.rows = std::ssize(files);
    Column& column = block.columns.emplace_back();
    column.type = ColumnType::binary;
    for (const std::string& file : files) column.append_text(file);
    auto bound = of.kind->bind({.info = {{.name = "image"}},
                                .types = {ColumnType::binary},
                                .at = {0}});
    Faults faults;
    Values values;
    bound->parser()->parse(block, values, faults);
    std::vector<ValueRow> rows;
    for (std::int64_t row = 0; row < block.rows; ++row)
      rows.push_back(values.row(row));
    runs_.clear();
    if (faults.rows.empty())
      bound->encoder(Json(), "x")->encode(rows, {.runs = &runs_}, faults);
    return faults.rows;
  }
  /// The first output of the stored row 0.
  std::vector<std::uint8_t> finished(const Field& of, bool train) {
    const Output output = of.kind->facts().outputs[0];
    std::vector<std::uint8_t> out(output.bytes(), 0xDB);
    const TensorPlace place{.data = reinterpret_cast<std::byte*>(out.data()),
                            .bytes = out.size()};
    const StoredRow row{.run = runs_.row(0), .range = {.sample = 5}};
    auto finisher = of.kind->finisher(train);
    finisher->finish(std::span(&row, 1), {.seed = 1}, std::span(&place, 1));
    faults_ = {finisher->rejected().begin(), finisher->rejected().end()};
    return out;
  }

  Values runs_;
  std::vector<RowFault> faults_;
};

TEST_F(ImageFieldTest, SettingsThatCannotBe) {
  EXPECT_THAT(refused(R"({"size": [1, 2, 3]})"), HasSubstr("height and width"));
  EXPECT_THAT(refused(R"({"size": 0})"), HasSubstr("x.image.size"));
  EXPECT_THAT(refused(R"({"scale": [1, 0.5]})"), HasSubstr("x.image.scale"));
  for (const char* range : {R"("scale": [0.5, 1])", R"("ratio": [1, 1])"}) {
    EXPECT_THAT(refused(std::string("{") + range + "}"),
                HasSubstr(R"(set "train": "random_resized_crop")"));
    for (const char* side : {"train", "val"})
      EXPECT_EQ(refused(std::string("{\"") + side +
                        R"(": "random_resized_crop", )" + range + "}"),
                "");
  }
  EXPECT_THAT(refused(R"({"mean": [0.5, 0.5, 0.5], "std": [1, 1, 1]})"),
              HasSubstr("\"dtype\": \"float32\""));
  EXPECT_THAT(refused(R"({"dtype": "float32", "mean": [0.5], "std": [1]})"),
              HasSubstr("3 channels"));
  EXPECT_THAT(refused(R"({"dtype": "float32", "mean": [0.5, 0.5, 0.5]})"),
              HasSubstr("write both"));
  EXPECT_THAT(refused(R"({"dtype": "float32", "mode": "L", "mean": [0],
                          "std": [0]})"),
              HasSubstr("above 0"));
  EXPECT_THAT(refused(R"({"size": 224, "resize": 100})"),
              HasSubstr("x.image.resize"));
  EXPECT_THAT(refused(R"({"store": {"max_side": 100}})"), HasSubstr("decoded"));
  EXPECT_THAT(refused(R"({"sise": 100})"), HasSubstr("size"));
  EXPECT_EQ(refused(R"({"size": 512})"), "");
}

TEST_F(ImageFieldTest, APictureWithMorePixelsThanAreAllowedIsBad) {
  const std::string file = golden_file("rgb.png");
  EXPECT_TRUE(store(field("{}"), {file}).empty());
  const std::vector<RowFault> faults =
      store(field(R"({"max_pixels": 100})"), {file});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0].why, AllOf(HasSubstr(" bytes decoded"),
                                   HasSubstr("allows 100 pixels")));
  EXPECT_EQ(field(R"({"max_pixels": 178956970})").kind->facts().recipe,
            field("{}").kind->facts().recipe);
  EXPECT_THAT(refused(R"({"max_pixels": 0})"), HasSubstr("x.image.max_pixels"));
}

TEST_F(ImageFieldTest, ARowWithoutBytesMayHaveThePathOfAFile) {
  Block block;
  block.rows = 1;
  block.columns.emplace_back().type = ColumnType::binary;
  block.columns[0].append_null();
  Faults faults;
  Values values;
  field(R"({"column": "image.bytes"})")
      .kind
      ->bind({.info = {{.name = "image.bytes"}},
              .types = {ColumnType::binary},
              .at = {0}})
      ->parser()
      ->parse(block, values, faults);
  ASSERT_EQ(faults.rows.size(), 1U);
  EXPECT_THAT(faults.rows[0].next,
              HasSubstr(R"("column": "image.path" with "folder")"));
}

TEST_F(ImageFieldTest, OnlyWhatADeviceDoesIsFinishedThere) {
  EXPECT_THAT(refused(R"({"finish": "device"})"),
              AllOf(HasSubstr("x.image.finish"), HasSubstr("files are kept"),
                    HasSubstr("set \"store\": {\"form\": \"decoded\"}")));
  const std::string decoded =
      R"({"finish": "device", "store": {"form": "decoded"})";
  EXPECT_THAT(refused(decoded + R"(, "augment": ["grayscale"]})"),
              AllOf(HasSubstr("x.image.finish"), HasSubstr("grayscale"),
                    HasSubstr("leave \"augment\"")));
  EXPECT_THAT(
      refused(decoded + R"(, "record_draws": true})"),
      AllOf(HasSubstr("x.image.finish"), HasSubstr("leave \"record_draws\"")));
  EXPECT_THAT(refused(R"({"finish": "disk"})"), HasSubstr("device"));
  EXPECT_EQ(refused(decoded + "}"), "");
}

TEST_F(ImageFieldTest, OnlyFilesInColourAreDecodedByADevice) {
  const std::string decode = R"({"decode": "device")";
  EXPECT_EQ(refused(decode + "}"), "");
  for (const auto& [setting, other] :
       {std::pair(R"("store": {"form": "decoded"})", "store"),
        std::pair(R"("mode": "L")", "mode"),
        std::pair(R"("parity": "fast")", "parity"),
        std::pair(R"("augment": ["grayscale"])", "augment"),
        std::pair(R"("record_draws": true)", "record_draws")})
    EXPECT_THAT(refused(decode + ", " + setting + "}"),
                AllOf(HasSubstr("x.image.decode"),
                      HasSubstr("leave \"" + std::string(other) + "\" or")));
  EXPECT_EQ(field(decode + "}").kind->facts().recipe,
            field("{}").kind->facts().recipe);
}

// A run that began on the host continues where a device finishes.
TEST_F(ImageFieldTest, WhereItIsFinishedIsNoPartOfTheRecipe) {
  const std::string decoded = R"({"store": {"form": "decoded"}, "finish": )";
  EXPECT_EQ(field(decoded + R"("host"})").kind->facts().recipe,
            field(decoded + R"("device"})").kind->facts().recipe);
}

TEST_F(ImageFieldTest, SaysWhatWouldSpareWork) {
  EXPECT_THAT(cheaper({field("{}")}), AllOf(HasSubstr("field 'x': \"store\""),
                                            Not(HasSubstr("dtype"))));
  EXPECT_THAT(cheaper({field(R"({"dtype": "float32"})")}),
              HasSubstr("\"dtype\": \"uint8\""));
  EXPECT_EQ(cheaper({field(R"({"store": {"form": "decoded"}})")}), "");
}

TEST_F(ImageFieldTest, ANumberIsNoPicture) {
  try {
    field("{}").kind->bind({.info = {{.name = "n", .declared = "REAL"}},
                            .types = {ColumnType::float64},
                            .at = {0}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "fields.not_bytes");
  }
}

TEST_F(ImageFieldTest, AColumnOfPathsGivesTheBytesOfTheirFiles) {
  const std::string folder = PENSTOCK_TEST_DATA "/images";
  const Field paths = field(R"({"size": 8, "folder": ")" + folder + R"("})");
  Block block;
  block.rows = 4;
  Column& column = block.columns.emplace_back();
  column.type = ColumnType::text;
  column.append_text("420_b.jpg");
  column.append_text(folder + "/rgb.png");
  column.append_text("none.jpg");
  column.append_null();
  auto bound = paths.kind->bind(
      {.info = {{.name = "file"}}, .types = {ColumnType::text}, .at = {0}});
  Values values;
  Faults faults;
  bound->parser()->parse(block, values, faults);
  for (const char* name : {"420_b.jpg", "rgb.png"}) {
    const ValueRow found = values.row(name[0] == '4' ? 0 : 1);
    const std::string file = golden_file(name);
    EXPECT_TRUE(std::ranges::equal(found, bytes_of(file))) << name;
  }
  ASSERT_EQ(faults.rows.size(), 2U);
  EXPECT_THAT(faults.rows[0].why, HasSubstr("none.jpg"));
  EXPECT_THAT(faults.rows[1].why, HasSubstr("expected the path"));
  try {
    paths.kind->bind(
        {.info = {{.name = "b"}}, .types = {ColumnType::binary}, .at = {0}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "fields.not_bytes");
  }
}

TEST_F(ImageFieldTest, WhatAThreadHoldsIsKnown) {
  auto held = [] {
    for (const HeldMemory& of : held_memory())
      if (of.owner == HeldFor::batches && of.place == HeldIn::host) return of;
    return HeldMemory();
  };
  const Field whole = field(R"({"size": 8, "train": "resize"})");
  EXPECT_TRUE(store(whole, {golden_file("420_b.jpg")}).empty());
  PictureHeader header;
  read_header(runs_.row(0), header);
  const std::size_t pixels = 3 * static_cast<std::size_t>(header.width) *
                             static_cast<std::size_t>(header.height);
  std::vector<std::byte> out(whole.kind->facts().outputs[0].bytes());
  const TensorPlace place{.data = out.data(), .bytes = out.size()};
  const StoredRow row{.run = runs_.row(0)};
  const std::size_t before = held().bytes;
  auto finisher = whole.kind->finisher(true);
  finisher->finish(std::span(&row, 1), {.seed = 1}, std::span(&place, 1));
  EXPECT_GT(held().bytes, before + pixels);
  finisher.reset();
  EXPECT_EQ(held().bytes, before);
}

TEST_F(ImageFieldTest, AKeptPictureIsFinishedAsItsFileIs) {
  for (const char* name : {"420_b.jpg", "exif_6.jpg", "lossless.webp"})
    for (bool train : {false, true}) {
      SCOPED_TRACE(name);
      const std::string drawn = R"({"size": [9, 8], "resize": 12,
                                    "train": "random_resized_crop",
                                    "flip": 0.5)";
      const Field encoded = field(drawn + "}");
      EXPECT_TRUE(store(encoded, {golden_file(name)}).empty());
      const std::vector<std::uint8_t> expected = finished(encoded, train);
      const Field decoded = field(drawn + R"(, "store": {"form": "decoded"}})");
      EXPECT_TRUE(store(decoded, {golden_file(name)}).empty());
      EXPECT_EQ(finished(decoded, train), expected);
    }
}

TEST_F(ImageFieldTest, APictureIsShrunkBeforeItIsKept) {
  const Field small = field(R"({"train": "none", "val": "resize",
      "size": [5, 8], "store": {"form": "decoded", "max_side": 8}})");
  // 24 x 15 pixels.
  EXPECT_EQ(store(small, {golden_file("exif_1.jpg")}).size(), 1U);
  const Field any = field(R"({"train": "resize", "size": [5, 8],
      "store": {"form": "decoded", "max_side": 8}})");
  EXPECT_TRUE(store(any, {golden_file("exif_1.jpg")}).empty());
  EXPECT_EQ(runs_.row(0).size(), 8U + 8 * 5 * 3);
}

TEST_F(ImageFieldTest, WithoutResizingAPictureMustHaveItsSize) {
  const Field none = field(R"({"train": "none", "size": [15, 24],
                               "layout": "nhwc"})");
  EXPECT_TRUE(store(none, {golden_file("exif_1.jpg")}).empty());
  const std::vector<RowFault> faults =
      store(none, {golden_file("exif_1.jpg"), golden_file("exif_6.jpg")});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].row, 1);
  EXPECT_THAT(faults[0].why, HasSubstr("24 x 15 pixels (height, width)"));
}

// Of 50 x 40 pixels and 8 x 9 that are wanted, a quarter is decoded.
TEST_F(ImageFieldTest, FastPicturesAreNearlyTheExactOnes) {
  for (const char* name :
       {"restarts.jpg", "420_b.jpg", "420_p.jpg", "444_b.jpg", "exif_6.jpg",
        "exif_3.jpg", "grey.jpg", "cmyk.jpg", "odd_1x33.jpg", "rgb.png"})
    for (const char* framing :
         {"random_resized_crop", "resize_center", "resize"})
      for (const char* size : {"[9, 8]", "[20, 24]"}) {
        SCOPED_TRACE(std::string(name) + framing + size);
        const std::string same = std::string(R"("resize": 30, "size": )") +
                                 size + R"(, "flip": 0.5, "train": ")" +
                                 framing + "\"}";
        const Field exact = field("{" + same);
        EXPECT_TRUE(store(exact, {golden_file(name)}).empty());
        const std::vector<std::uint8_t> expected = finished(exact, true);
        const Field fast = field(R"({"parity": "fast", )" + same);
        const std::vector<std::uint8_t> found = finished(fast, true);
        EXPECT_TRUE(faults_.empty());
        double sum = 0;
        for (std::size_t at = 0; at < found.size(); ++at)
          sum += std::abs(found[at] - expected[at]);
        // The pictures are noise, of which a smaller one keeps less.
        EXPECT_LT(sum / static_cast<double>(found.size()), 12);
      }
}

TEST_F(ImageFieldTest, AMaskHoldsTheNumbersOfItsPaletteWherePixelsAreMoved) {
  const std::string same = R"("size": [9, 8], "train": "random_resized_crop",
      "flip": 0.5, "augment": [{"rotation": {"degrees": 40, "fill": 0}},
                  {"color_jitter": {"brightness": 0.5}}])";
  const Field mask = field("{\"mode\": \"P\", " + same + "}");
  EXPECT_EQ(mask.kind->facts().outputs[0].row_shape, (Shape{9, 8}));
  EXPECT_TRUE(store(mask, {golden_file("palette_16.png")}).empty());
  const std::vector<std::uint8_t> numbers = finished(mask, true);
  EXPECT_THAT(numbers, testing::Each(testing::Lt(16)));
  EXPECT_GT(std::set(numbers.begin(), numbers.end()).size(), 3U);
  // The picture itself, by its colours, moved in the same way.
  std::string plain = same;
  plain.resize(plain.find(R"(,
                  {"color_jitter")"));
  const Field picture =
      field(R"({"interpolation": "nearest", )" + plain + "]}");
  EXPECT_TRUE(store(picture, {golden_file("palette_16.png")}).empty());
  const std::vector<std::uint8_t> colours = finished(picture, true);
  std::map<std::uint8_t, std::set<std::uint8_t>> reds;
  for (std::size_t at = 0; at < numbers.size(); ++at)
    reds[numbers[at]].insert(colours[at]);
  for (const auto& [number, of] : reds)
    EXPECT_TRUE(number == 0 || of.size() == 1) << int{number};
  const std::vector<RowFault> faults =
      store(mask, {golden_file("rgb.png"), golden_file("420_b.jpg"),
                   golden_file("wide.png")});
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_THAT(faults[0].why, HasSubstr("has colours"));
  EXPECT_THAT(faults[1].why, HasSubstr("not PNG"));
  EXPECT_THAT(faults[2].why, HasSubstr("16 bits"));
  EXPECT_THAT(refused(R"({"mode": "P", "interpolation": "bilinear"})"),
              HasSubstr("would mix classes"));
  EXPECT_THAT(refused(R"({"mode": "P", "dtype": "float32"})"),
              HasSubstr("classes are integers"));
  EXPECT_THAT(refused(R"({"dtype": "int64"})"), HasSubstr("only masks"));
}

// Of the row behind another one, which stays unchanged; a row that is bad all
// the same becomes zeros.
TEST_F(ImageFieldTest, ADeviceMakesWhatTheHostMakes) {
  for (const char* settings :
       {R"({"mode": "P", "size": [9, 8], "dtype": "int64",
            "train": "random_resized_crop", "flip": 1)",
        R"({"mode": "P", "size": [3, 40], "train": "resize", "flip": 1)",
        R"({"size": [9, 8], "parity": "fast", "train": "random_resized_crop",
            "flip": 0.5)"})
    for (bool train : {false, true}) {
      SCOPED_TRACE(settings);
      const Field of =
          field(settings + std::string(R"(, "store": {"form": "decoded"},
                                           "finish": "device"})"));
      EXPECT_TRUE(of.kind->facts().wants_device);
      EXPECT_TRUE(store(of, {golden_file("palette_16.png")}).empty());
      const std::vector<std::uint8_t> expected = finished(of, train);
      const std::size_t bytes = expected.size();
      std::vector<std::uint8_t> out(3 * bytes, 0xDB);
      const std::vector<std::int64_t> starts{2, 1};
      const TensorPlace place{.data = reinterpret_cast<std::byte*>(out.data()),
                              .bytes = bytes,
                              .starts = starts};
      const std::vector<std::byte> bad(KeptPicture::kHead + 3, std::byte{0});
      const std::vector<StoredRow> rows{
          {.run = runs_.row(0), .head = runs_.row(0), .range = {.sample = 5}},
          {.run = bad, .head = bad}};
      auto finisher = of.kind->finisher(train);
      finisher->inspect(rows);
      ASSERT_EQ(finisher->rejected().size(), 1U);
      EXPECT_EQ(finisher->rejected()[0].row, 1);
      const std::unique_ptr<Device> cpu = open_device({.kind = "cpu"});
      finisher->queue(
          {.rows = rows, .key = {.seed = 1}, .to = std::span(&place, 1)},
          *cpu->make_stream());
      const auto row = [&](std::size_t at) {
        return std::vector(
            out.begin() + static_cast<std::ptrdiff_t>(at * bytes),
            out.begin() + static_cast<std::ptrdiff_t>((at + 1) * bytes));
      };
      EXPECT_EQ(row(2), expected);
      EXPECT_THAT(row(1), testing::Each(0));
      EXPECT_THAT(row(0), testing::Each(0xDB));
    }
}

// A damaged PNG file shows it only when it is decoded.
TEST_F(ImageFieldTest, DamageThatDecodingShowsIsRejectedThen) {
  std::string file = golden_file("rgb.png");
  const std::size_t data = file.find("IDAT");
  ASSERT_NE(data, file.npos);
  file[data + 20] = static_cast<char>(file[data + 20] ^ 0x55);
  const Field of = field(R"({"size": 8})");
  EXPECT_TRUE(store(of, {file}).empty());
  const std::vector<std::uint8_t> out = finished(of, true);
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_THAT(faults_[0].why, HasSubstr("damaged PNG"));
  EXPECT_THAT(out, testing::Each(0));
  // Also where it was decoded before: `loader.on_bad` decides about its batch.
  const Field kept = field(R"({"size": 8, "store": {"form": "decoded"}})");
  EXPECT_TRUE(store(kept, {file}).empty());
  EXPECT_THAT(finished(kept, true), testing::Each(0));
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_THAT(faults_[0].why, HasSubstr("damaged PNG"));
}

}  // namespace
}  // namespace penstock
