// TFRecord files, good and bad. The test at the end of
// tests/end_to_end/arrays_test.py compares with what TensorFlow's own format
// says; here records are made by test_records.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef PENSTOCK_ZLIB
#include <zlib.h>
#endif

#include "penstock/sources/files/test_damage.h"
#include "penstock/sources/tfrecord/test_records.h"

namespace penstock::tfrecord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string row(std::int64_t i) {
  return record(example(
      entry("label", integers_feature({i})) +
      entry("name", bytes_feature({"row " + std::to_string(i)})) +
      entry("picture", bytes_feature({std::string("\xff\xd8\x00", 3)})) +
      entry("x", floats_feature({static_cast<float>(i), 2})) +
      entry("ids", integers_feature({-1, i, 300}))));
}

class TfRecordTest : public testing::Test {
 protected:
  std::vector<std::string> rows(const std::string& bytes,
                                std::vector<std::string> columns = {}) {
    return files::shown_rows(
        files::section_of("tfrecord", folder_.write("a.tfrecord", bytes)),
        std::move(columns));
  }
  files::TestFolder folder_;
};

TEST_F(TfRecordTest, FeaturesAreColumns) {
  EXPECT_THAT(rows(row(0) + row(7), {"label", "name", "x", "ids"}),
              ElementsAre("0.0 | row 0 | list of 2 | list of 3",
                          "7.0 | row 7 | list of 2 | list of 3"));
  EXPECT_THAT(rows(row(0), {"picture"}).back().size(), 3u);
  EXPECT_THAT(rows(""), ElementsAre());
}

TEST_F(TfRecordTest, AFeatureThatARecordLacksIsNull) {
  EXPECT_THAT(
      rows(row(0) + record(example(entry("name", bytes_feature({"more"})))),
           {"label", "name", "x"}),
      ElementsAre("0.0 | row 0 | list of 2", "null | more | null"));
}

TEST_F(TfRecordTest, AValueOfAnotherTypeIsAProblemOfItsRow) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += row(i);
  bytes += record(example(entry("label", integers_feature({1, 2}))));
  bytes += record(example(entry("label", floats_feature({1}))));
  const auto found = rows(bytes, {"label"});
  ASSERT_EQ(found.size(), 102u);
  EXPECT_THAT(found[100], HasSubstr("has 2 values, expected one"));
  EXPECT_THAT(found[101], HasSubstr("another type"));
}

TEST_F(TfRecordTest, SeveralTextsInARecordAreLeftOutAndRefusedByName) {
  std::string bytes;
  for (int i = 0; i < 3; ++i)
    bytes += record(example(entry("words", bytes_feature({"a", "b"})) +
                            entry("label", integers_feature({i}))));
  EXPECT_THAT(rows(bytes, {"label"}), ElementsAre("0.0", "1.0", "2.0"));
  EXPECT_THAT(rows(bytes, {"words"}),
              ElementsAre(testing::AllOf(
                  HasSubstr("cannot read feature 'words'"),
                  HasSubstr("holds several texts in a record"))));
  const auto left_out =
      read_schema(parse_source_spec(
                      files::section_of("tfrecord", folder_.path("a.tfrecord")),
                      "source"))
          .left_out;
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].name, "words");
}

TEST_F(TfRecordTest, ADamagedRecordIsABadRowAndADamagedLengthAnError) {
  std::string bytes = row(0) + row(1);
  std::string data = bytes;
  data[20] ^= 1;
  EXPECT_THAT(rows(data, {"label"}), ElementsAre(HasSubstr("CRC"), "1.0"));
  std::string many;
  for (int i = 0; i < 150; ++i) many += row(i);
  many[many.size() - 8] ^= 1;
  const auto found = rows(many, {"label"});
  ASSERT_EQ(found.size(), 150u);
  EXPECT_THAT(found.back(), HasSubstr("CRC"));
  std::string length = bytes;
  length[0] ^= 1;
  EXPECT_THAT(rows(length), ElementsAre(HasSubstr("CRC")));
  EXPECT_THAT(rows(bytes.substr(0, bytes.size() - 2)),
              ElementsAre(HasSubstr("record 1")));
  EXPECT_THAT(rows(record(field(2, "x"))),
              ElementsAre(HasSubstr("SequenceExample")));
}

#ifdef PENSTOCK_ZLIB
/// A stream of gzip (`window` 15 + 16) or zlib (15).
std::string packed(const std::string& bytes, int window) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(TfRecordTest, FilesThatAreCompressedAsAWholeGiveTheSameRows) {
  constexpr int kGzip = 15 + 16, kZlib = 15;
  std::string one, two;
  for (int i = 0; i < 300; ++i) one += row(i);
  for (int i = 300; i < 700; ++i) two += row(i);
  const auto expected = rows(one + two, {"label", "name"});
  ASSERT_EQ(expected.size(), 700u);
  EXPECT_EQ(rows(packed(one + two, kGzip), {"label", "name"}), expected);
  EXPECT_EQ(rows(packed(one + two, kZlib), {"label", "name"}), expected);
  EXPECT_EQ(rows(packed(one, kGzip) + packed(two, kGzip), {"label", "name"}),
            expected)
      << "several streams";
  EXPECT_EQ(rows(packed(one + two, kGzip) + std::string(512, '\0'),
                 {"label", "name"}),
            expected)
      << "filled up";
  EXPECT_THAT(rows(packed("", kGzip)), ElementsAre());

  // By position, and over a folder of files of either sort.
  folder_.write("b/1.tfrecord.gz", packed(one, kGzip));
  folder_.write("b/2.tfrecord", two);
  const Json of = files::section_of("tfrecord", folder_.path("b"));
  EXPECT_EQ(files::shown_rows(of, {"label", "name"}), expected);
  auto source =
      files::open_files(of, {{.column = "label", .as = ReadAs::value}});
  Block block;
  source->open_reader()->read(std::vector<std::int64_t>{299, 650, 3}, block);
  EXPECT_THAT((std::vector{block.columns[0].int64(0), block.columns[0].int64(1),
                           block.columns[0].int64(2)}),
              ElementsAre(299, 650, 3));
  EXPECT_EQ(source->chunks()->decoded_bytes, one.size());
}

TEST_F(TfRecordTest, ADamagedCompressedFileIsNamed) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) bytes += row(i);
  const std::string good = packed(bytes, 15 + 16);
  EXPECT_THAT(rows(good.substr(0, good.size() - 9)),
              ElementsAre(HasSubstr("ends within a gzip stream")));
  EXPECT_THAT(rows("\x1f\x8b some gzip"),
              ElementsAre(HasSubstr("not a gzip stream")));
  const std::string path = folder_.write("a.tfrecord", good);
  files::read_damaged(files::section_of("tfrecord", path), path,
                      files::damages(300), 1);
}
#endif

TEST_F(TfRecordTest, GivesRowsOrAnErrorThatNamesTheFileWhenDamaged) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += row(i);
  const std::string path = folder_.write("a.tfrecord", bytes);
  files::read_damaged(files::section_of("tfrecord", path), path,
                      files::damages(300), 1);
  // Damage behind a CRC that fits it.
  std::mt19937_64 random(1);
  for (int time = 0; time < files::damages(300); ++time) {
    const std::string data = files::damaged(row(3).substr(12), random);
    ASSERT_NO_THROW(rows(record(data)));
  }
}

}  // namespace
}  // namespace penstock::tfrecord
