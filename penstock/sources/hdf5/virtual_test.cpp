// Virtual data sets, and where the files lie that they map; links to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "penstock/base/log.h"
#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A data set `x` of the rows of `x` in these files, two of each.
void write_virtual(const std::string& path,
                   const std::vector<std::string>& names) {
  const hid_t file =
      H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t all[] = {2 * names.size()}, each[] = {2};
  const hid_t space = H5Screate_simple(1, all, nullptr);
  const hid_t part = H5Screate_simple(1, each, nullptr);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
  hsize_t start[] = {0};
  for (const std::string& name : names) {
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, each, nullptr);
    H5Pset_virtual(how, space, name.c_str(), "x", part);
    start[0] += 2;
  }
  H5Sselect_all(space);
  H5Dclose(H5Dcreate2(file, "x", H5T_NATIVE_INT64, space, H5P_DEFAULT, how,
                      H5P_DEFAULT));
  H5Pclose(how);
  H5Sclose(part);
  H5Sclose(space);
  H5Fclose(file);
}

class VirtualDataSet : public ::testing::Test {
 protected:
  VirtualDataSet() {
    std::filesystem::create_directories(folder_.path("d/parts"));
    for (std::int64_t p : {1, 2})
      TestFile(folder_.path("d/parts/p" + std::to_string(p) + ".h5"))
          .write("x", std::vector<std::int64_t>{10 * p, 10 * p + 1});
  }
  Json section(const std::string& path) const {
    return files::section_of("hdf5", folder_.path(path));
  }

  /// x at these positions, of a source whose files were copied to copy/.
  std::vector<std::int64_t> read_copy(
      Json of, const std::vector<std::int64_t>& positions) const {
    of["stage"] = folder_.path("copies");
    SourceSpec spec = parse_source_spec(of, "source");
    spec.staged_in = folder_.path("copy");
    auto source = open_source(spec, {wanted("/x")});
    Block block;
    open_checked_reader(*source)->read(positions, block);
    std::vector<std::int64_t> found;
    for (std::int64_t row = 0; row < block.rows; ++row)
      found.push_back(block.columns[0].as_int64(row));
    return found;
  }

  files::TestFolder folder_;
};

TEST_F(VirtualDataSet, OverAnotherOneIsCalledSo) {
  write_virtual(folder_.path("d/one.h5"), {"parts/p1.h5"});
  write_virtual(folder_.path("d/two.h5"), {"one.h5"});
  EXPECT_THAT(rows_of(section("d/two.h5"), {wanted("/x")}),
              ElementsAre(HasSubstr("maps another virtual data set")));
}

TEST_F(VirtualDataSet, FindsFilesBesideItsOwn) {
  write_virtual(folder_.path("d/all.h5"), {"parts/p1.h5", "parts/p2.h5"});
  EXPECT_THAT(rows_of(section("d/all.h5"), {wanted("/x")}),
              ElementsAre("10", "11", "20", "21"));
}

// The copy holds what `path` names alone.
TEST_F(VirtualDataSet, OfACopyFindsFilesBesideTheOriginal) {
  write_virtual(folder_.path("d/all.h5"), {"parts/p1.h5", "parts/p2.h5"});
  std::filesystem::create_directories(folder_.path("copy/0"));
  std::filesystem::copy(folder_.path("d/all.h5"),
                        folder_.path("copy/0/all.h5"));
  EXPECT_THAT(read_copy(section("d/all.h5"), {3, 0}), ElementsAre(21, 10));
}

TEST_F(VirtualDataSet, OfACopyReadsTheCopiesOfItsFiles) {
  write_virtual(folder_.path("d/all.h5"), {"parts/p1.h5", "parts/p2.h5"});
  std::filesystem::create_directories(folder_.path("copy/0"));
  std::filesystem::create_directories(folder_.path("copy/1"));
  std::filesystem::copy(folder_.path("d/all.h5"),
                        folder_.path("copy/0/all.h5"));
  TestFile(folder_.path("copy/1/p1.h5"))
      .write("x", std::vector<std::int64_t>{50, 51});
  Json of = section("d/all.h5");
  of["path"] =
      Json::Array{folder_.path("d/all.h5"), folder_.path("d/parts/p1.h5")};
  EXPECT_THAT(read_copy(of, {1, 2}), ElementsAre(51, 20))
      << "of the copy, and of a file that does not exist";
}

TEST_F(VirtualDataSet, NamesTheFileThatIsNotThereAndWhatToDo) {
  write_virtual(folder_.path("d/all.h5"), {"parts/p1.h5", "parts/gone.h5"});
  const std::vector<std::string> told =
      rows_of(section("d/all.h5"), {wanted("/x")});
  EXPECT_THAT(told, ElementsAre(testing::AllOf(
                        HasSubstr("'parts/gone.h5', which does not exist"),
                        HasSubstr("put that file back"))));
}

TEST_F(VirtualDataSet, OfWhichNoneIsReadIsNamedWithTheReason) {
  const hid_t file = H5Fcreate(folder_.path("d/link.h5").c_str(), H5F_ACC_TRUNC,
                               H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_external("parts/p1.h5", "/x", file, "y", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(rows_of(section("d/link.h5"), {wanted("/y")}),
              ElementsAre(HasSubstr("read as rows; /y: ")));
}

TEST_F(VirtualDataSet, WarnsWhereItsFilesAreReadToo) {
  auto warning = [&](const std::string& folder, const std::string& of,
                     const std::string& parts) {
    std::filesystem::create_directories(folder_.path(folder));
    write_virtual(folder_.path(of), {parts + "p1.h5", parts + "p2.h5"});
    std::string warned;
    set_log_writer([&](LogLevel level, std::string_view line) {
      if (level == LogLevel::warning) warned += line;
    });
    EXPECT_EQ(rows_of(section("d"), {wanted("/x")}).size(), 8u);
    set_log_writer({});
    std::filesystem::remove(folder_.path(of));
    return warned;
  };
  EXPECT_THAT(warning("d/parts", "d/parts/all.h5", ""),
              HasSubstr("p1.h5', which is read too"));
  EXPECT_THAT(warning("d/sub", "d/sub/all.h5", "../parts/"),
              HasSubstr("p1.h5', which is read too"));
}

}  // namespace
}  // namespace penstock::hdf5
