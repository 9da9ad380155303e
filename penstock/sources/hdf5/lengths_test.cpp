// Data sets of several lengths in one file: X_train beside X_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Whole = std::vector<std::int64_t>;

class TrainAndTest : public testing::Test {
 protected:
  TrainAndTest() { write("a.h5"); }

  void write(const std::string& name, std::int64_t from = 0) const {
    TestFile file(folder_.path(name));
    file.write("X_train", Whole{from, 1, 2, 3, 4, 5}, {.chunk = 2}, 2);
    file.write("y_train", Whole{from + 10, 11, 12});
    file.write("X_test", Whole{from + 20, 21, 22, 23}, {.chunk = 1}, 2);
    file.write("y_test", Whole{from + 30, 31});
  }
  Json section(const std::string& path = "a.h5") const {
    return files::section_of("hdf5", folder_.path(path));
  }

  files::TestFolder folder_;
};

TEST_F(TrainAndTest, AreReadByTheNamesOfEither) {
  EXPECT_THAT(rows_of(section(), {wanted("/X_train"), wanted("/y_train")}),
              ElementsAre("0 1 | 10", "2 3 | 11", "4 5 | 12"));
  EXPECT_THAT(rows_of(section(), {wanted("/X_test"), wanted("/y_test")}),
              ElementsAre("20 21 | 30", "22 23 | 31"));
  EXPECT_THAT(rows_of(section(), {wanted("/y_test")}), ElementsAre("30", "31"));
}

TEST_F(TrainAndTest, AreNotReadTogether) {
  EXPECT_THAT(rows_of(section(), {wanted("/X_train"), wanted("/y_test")}),
              ElementsAre(AllOf(HasSubstr("hdf5.lengths"),
                                HasSubstr("3 rows: '/X_train'; 2 rows: "
                                          "'/y_test'"))));
}

TEST_F(TrainAndTest, TheSmallerIsLeftOutByDefaultAndSaysWhatToName) {
  const Schema schema = read_schema(parse_source_spec(section(), "source"));
  std::vector<std::string> left_out;
  for (const LeftOutColumn& one : schema.left_out) left_out.push_back(one.name);
  EXPECT_THAT(left_out, ElementsAre("/X_test", "/y_test"));
  EXPECT_EQ(
      schema.left_out[0].why,
      "the column has 2 rows, but '/X_train', '/y_train' have 3: to read it, "
      "name it in 'fields' with '/y_test'");
}

TEST_F(TrainAndTest, OfSeveralFilesFollowOneAnother) {
  std::filesystem::create_directories(folder_.path("d"));
  write("d/a.h5");
  write("d/b.h5", 100);
  EXPECT_THAT(
      rows_of(section("d"), {wanted("/X_test"), wanted("/y_test")}),
      ElementsAre("20 21 | 30", "22 23 | 31", "120 21 | 130", "22 23 | 31"));
}

// What is not read by default need not be in all files.
TEST_F(TrainAndTest, AFileMayHaveMoreThanOthers) {
  std::filesystem::create_directories(folder_.path("d"));
  TestFile(folder_.path("d/a.h5")).write("x", Whole{1, 2, 3});
  {
    TestFile file(folder_.path("d/b.h5"));
    file.write("x", Whole{4, 5, 6});
    file.write("edges", Whole{7});
  }
  EXPECT_THAT(rows_of(section("d"), {wanted("/x")}),
              ElementsAre("1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(rows_of(section("d"), {wanted("/edges")}),
              ElementsAre(AllOf(HasSubstr("hdf5.unreadable"),
                                HasSubstr("to all files"))));
}

TEST_F(TrainAndTest, RowsThatHoldNoValuesAreRefused) {
  {
    const hid_t file = H5Fcreate(folder_.path("e.h5").c_str(), H5F_ACC_TRUNC,
                                 H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t dims[] = {1'000'000'000'000, 0};
    const hid_t space = H5Screate_simple(2, dims, nullptr);
    H5Dclose(H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT,
                        H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(file);
  }
  EXPECT_THAT(rows_of(section("e.h5"), {wanted("/x")}),
              ElementsAre(HasSubstr(
                  "the 1000000000000 rows of the data set hold no values")));
}

}  // namespace
}  // namespace penstock::hdf5
