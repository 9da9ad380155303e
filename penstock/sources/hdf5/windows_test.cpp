// Windows of long data sets, of one file and of several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<double> counted(std::size_t count, double from = 0) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

/// What a window has to hold: "5 6 7".
std::string run_of(std::int64_t first, std::int64_t count) {
  std::string text;
  for (std::int64_t at = first; at < first + count; ++at)
    text += (at == first ? "" : " ") + std::to_string(at);
  return text;
}

Json section(const std::string& path) {
  return files::section_of("hdf5", path);
}

class WindowsOfHdf5 : public testing::Test {
 protected:
  std::string path(const std::string& name = "a.h5") const {
    return folder_.path(name);
  }
  files::TestFolder folder_;
};

TEST_F(WindowsOfHdf5, AreRowsHoweverTheDataSetLies) {
  {
    TestFile file(path());
    file.write("plain", counted(1000));
    file.write("chunks", counted(1000), {.chunk = 64});
    file.write("packed", counted(1000),
               {.chunk = 7, .deflate = 4, .shuffle = true});
  }
  for (const char* name : {"/plain", "/chunks", "/packed"})
    for (auto [length, stride] :
         {std::pair(8, 8), std::pair(8, 3), std::pair(3, 8), std::pair(100, 1),
          std::pair(1, 1), std::pair(1000, 1), std::pair(90, 400)}) {
      std::vector<std::string> expected;
      for (std::int64_t at = 0; at + length <= 1000; at += stride)
        expected.push_back(run_of(at, length));
      EXPECT_EQ(rows_of(section(path()), {wanted(name, length, stride)}),
                expected)
          << name << " " << length << " " << stride;
    }
}

TEST_F(WindowsOfHdf5, OfATableHaveItsColumns) {
  TestFile(path()).write("eeg", counted(20), {.chunk = 3, .deflate = 1}, 4);
  EXPECT_THAT(rows_of(section(path()), {wanted("/eeg", 2, 2)}),
              ElementsAre(run_of(0, 8), run_of(8, 8)));
  EXPECT_THAT(rows_of(section(path()), {wanted("/eeg", 3, 1)}),
              ElementsAre(run_of(0, 12), run_of(4, 12), run_of(8, 12)));
}

TEST_F(WindowsOfHdf5, DoNotCrossFromOneFileIntoTheNext) {
  TestFile(path("a.h5")).write("x", counted(10), {.chunk = 4});
  TestFile(path("b.h5")).write("x", counted(3, 100));
  TestFile(path("c.h5"))
      .write("x", counted(8, 200), {.chunk = 3, .deflate = 1});
  EXPECT_THAT(rows_of(section(path("")), {wanted("/x", 4, 3)}),
              ElementsAre(run_of(0, 4), run_of(3, 4), run_of(6, 4),
                          run_of(200, 4), run_of(203, 4)));
  EXPECT_THAT(rows_of(section(path("b.h5")), {wanted("/x", 4, 3)}),
              ElementsAre(HasSubstr("found at most 3 rows in a file")));
}

TEST_F(WindowsOfHdf5, StandBesideWhatHasARowForEach) {
  for (const char* name : {"a.h5", "b.h5"}) {
    TestFile file(path(name));
    file.write("x", counted(12), {.chunk = 5});
    file.write("slow", counted(6));
    file.write("label", counted(3, 40));
  }
  TestFile(folder_.path("labels.other")).write("more", counted(6, 70));
  Json of = section(path("*.h5"));
  EXPECT_THAT(rows_of(of, {wanted("/x", 4, 4), wanted("/label"),
                           wanted("/slow", 2, 2)}),
              ElementsAre("0 1 2 3 | 40 | 0 1", "4 5 6 7 | 41 | 2 3",
                          "8 9 10 11 | 42 | 4 5", "0 1 2 3 | 40 | 0 1",
                          "4 5 6 7 | 41 | 2 3", "8 9 10 11 | 42 | 4 5"));
  of["labels"] = folder_.path("labels.other");
  EXPECT_THAT(rows_of(of, {wanted("/more"), wanted("/x", 4, 4)}),
              ElementsAre("70 | 0 1 2 3", "71 | 4 5 6 7", "72 | 8 9 10 11",
                          "73 | 0 1 2 3", "74 | 4 5 6 7", "75 | 8 9 10 11"));
  of["where"] = "\"/label\" > 40";
  EXPECT_THAT(rows_of(of, {wanted("/x", 4, 4)}), SizeIs(4));
}

TEST_F(WindowsOfHdf5, LabelsOfAnotherFileArePartOfWhatTheRowsAre) {
  TestFile(path()).write("x", counted(6));
  auto identity = [&] {
    Json of = section(path());
    of["labels"] = folder_.path("y.other");
    return files::open_files(of, {wanted("/x"), wanted("/y")})->identity();
  };
  TestFile(folder_.path("y.other")).write("y", counted(6));
  const Json before = identity();
  EXPECT_EQ(identity(), before);
  TestFile(folder_.path("y.other")).write("y", counted(6, 10));
  EXPECT_NE(identity(), before) << "or a store would go on with the old ones";
}

TEST_F(WindowsOfHdf5, ThatCannotBeAreRefusedWithTheReason) {
  {
    TestFile file(path());
    file.write("x", counted(12));
    file.write("other", counted(10));
    file.write("texts", std::vector<std::string>(12, "text"));
    file.write("offsets", std::vector<std::int64_t>{0, 5, 12});
  }
  const Json of = section(path());
  EXPECT_THAT(rows_of(of, {wanted("/x", 4, 4), wanted("/other")}),
              ElementsAre(testing::AllOf(
                  HasSubstr("hdf5.lengths"),
                  HasSubstr("3 rows: '/x' (windows); 10 rows: '/other'"))));
  EXPECT_THAT(rows_of(of, {wanted("/x", 4, 4), wanted("/other", 4, 4)}),
              ElementsAre(HasSubstr("2 rows: '/other' (windows)")));
  EXPECT_THAT(rows_of(of, {wanted("/texts", 4, 4)}),
              ElementsAre(HasSubstr("several values of type text")));
  EXPECT_THAT(
      rows_of(of, {wanted("/x", 500, 4)}),
      ElementsAre(testing::AllOf(
          HasSubstr("source.window"), HasSubstr(path()),
          HasSubstr("rows in a file, expected at least 500, the length"))));
  EXPECT_THAT(rows_of(of, {wanted("/nothing", 4, 4)}),
              ElementsAre(HasSubstr("source.unknown_column")));
  Json cut = of;
  cut["ragged"]["/x"] = "/offsets";
  EXPECT_THAT(rows_of(cut, {wanted("/x", 4, 4)}),
              ElementsAre(testing::AllOf(HasSubstr("source.window"),
                                         HasSubstr("list of float64"))));
  Json labels = section(path());
  TestFile(folder_.path("y.other")).write("y", counted(12));
  labels["labels"] = folder_.path("y.other");
  EXPECT_THAT(rows_of(labels, {wanted("/y", 4, 4)}),
              ElementsAre(HasSubstr("source.window")));
}

TEST_F(WindowsOfHdf5, OfADamagedChunkAreBadAndOthersAreNot) {
  std::vector<std::int64_t> wholes(64);
  std::iota(wholes.begin(), wholes.end(), 0);
  TestFile(path()).write("y", wholes, {.chunk = 16, .checksum = true});
  std::string bytes = files::TestFolder::read(path());
  const std::int64_t some = 35;  // of the chunk from 32 to 47
  const std::size_t at = bytes.find(
      std::string(reinterpret_cast<const char*>(&some), sizeof(some)));
  ASSERT_NE(at, bytes.npos);
  bytes[at] = 77;
  folder_.write("a.h5", bytes);
  auto source = files::open_files(section(path()), {wanted("/y", 10, 4)});
  EXPECT_EQ(source->count().rows, 14);
  std::vector<std::int64_t> bad;
  auto reader = open_checked_reader(*source);
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {}, [&](KeyList& keys, Block& block) {
      for (const RowProblem& problem : block.problems)
        bad.push_back(keys.integer(problem.row));
      for (std::int64_t row = 0; row < block.rows; ++row)
        if (block.columns[0].valid(row)) {
          EXPECT_EQ(files::shown_numbers(block.columns[0], row),
                    run_of(4 * keys.integer(row), 10));
        }
      return true;
    });
  // 4 r + 10 > 32 and 4 r < 48
  EXPECT_THAT(bad, ElementsAre(6, 7, 8, 9, 10, 11));
}

}  // namespace
}  // namespace penstock::hdf5
