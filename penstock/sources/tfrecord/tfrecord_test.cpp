// TFRecord files, good and bad. The test at the end of
// tests/end_to_end/arrays_test.py compares with what TensorFlow's own format
// says; here records are made by test_records.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(found[101], HasSubstr("of another type"));
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
  EXPECT_THAT(rows(length), ElementsAre(HasSubstr("its length has another")));
  EXPECT_THAT(rows(bytes.substr(0, bytes.size() - 2)),
              ElementsAre(HasSubstr("record 1")));
  EXPECT_THAT(rows("\x1f\x8b some gzip, not unpacked"),
              ElementsAre(HasSubstr("gzip")));
  EXPECT_THAT(rows(record(field(2, "x"))),
              ElementsAre(HasSubstr("SequenceExample")));
}

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
