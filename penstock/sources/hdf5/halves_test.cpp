// Numbers of 16 bits keep their width where rows hold several of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using ::testing::ElementsAre;

/// IEEE 754's binary16, or the upper half of a float32.
hid_t half_type(Dtype dtype) {
  const bool brain = dtype == Dtype::bfloat16;
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, brain ? 7 : 10, brain ? 8 : 5, 0, brain ? 7 : 10);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, brain ? 127 : 15);
  return type;
}

/// The numbers 0, 1, 2... as `rows` rows of `each`, which libhdf5 converts.
void write_halves(const std::string& path, Dtype dtype, bool big, hsize_t rows,
                  hsize_t each) {
  std::vector<float> numbers(rows * each);
  for (std::size_t at = 0; at < numbers.size(); ++at)
    numbers[at] = static_cast<float>(at);
  const hid_t file =
      H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t dims[] = {rows, each};
  const hid_t space = H5Screate_simple(each == 1 ? 1 : 2, dims, nullptr);
  const hid_t type = half_type(dtype);
  if (big) H5Tset_order(type, H5T_ORDER_BE);
  const hid_t set =
      H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
           numbers.data());
  H5Dclose(set);
  H5Tclose(type);
  H5Sclose(space);
  H5Fclose(file);
}

class Halves : public testing::TestWithParam<std::pair<Dtype, bool>> {
 protected:
  void write(hsize_t rows, hsize_t each) {
    const auto [dtype, big] = GetParam();
    write_halves(path_, dtype, big, rows, each);
  }
  ColumnType type_of(const ColumnRequest& request) const {
    return files::open_files(section(), {request})->types()[0];
  }
  Json section() const { return files::section_of("hdf5", path_); }
  Dtype dtype() const { return GetParam().first; }

  files::TestFolder folder_;
  const std::string path_ = folder_.path("a.h5");
};

TEST_P(Halves, StayWhatTheyAreInTensors) {
  write(4, 3);
  EXPECT_EQ(type_of(files::wanted("/x")), ColumnType::tensor(dtype()));
  EXPECT_THAT(files::rows_of(section(), {files::wanted("/x")}),
              ElementsAre("0 1 2", "3 4 5", "6 7 8", "9 10 11"));
}

TEST_P(Halves, StayWhatTheyAreInWindowsOfALongDataSet) {
  write(10, 1);
  EXPECT_EQ(type_of(files::wanted("/x", 4, 3)), ColumnType::tensor(dtype()));
  EXPECT_THAT(files::rows_of(section(), {files::wanted("/x", 4, 3)}),
              ElementsAre("0 1 2 3", "3 4 5 6", "6 7 8 9"));
}

TEST_P(Halves, StayWhatTheyAreInListsThatOffsetsCut) {
  write(5, 1);
  {
    const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hsize_t dims[] = {3};
    const hid_t space = H5Screate_simple(1, dims, nullptr);
    const std::int64_t offsets[] = {0, 2, 5};
    const hid_t set = H5Dcreate2(file, "at", H5T_NATIVE_INT64, space,
                                 H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, offsets);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
  }
  Json of = section();
  of["ragged"]["/x"] = "/at";
  auto source = files::open_files(of, {files::wanted("/x")});
  const std::vector<std::int64_t> some = {1, 0};
  Block block;
  open_checked_reader(*source)->read(some, block);
  const ListedNumbers row = *listed_numbers(block.columns[0], 0);
  EXPECT_EQ(row.dtype, dtype());
  EXPECT_THAT(files::numbers_of(row), ElementsAre(2, 3, 4));
  source = files::open_files(of, {{.column = "/x", .as = ReadAs::json}});
  open_checked_reader(*source)->read(some, block);
  EXPECT_EQ(block.columns[0].text(0), "[2,3,4]");
}

TEST_P(Halves, AreFloat32WhereARowIsOneOfThem) {
  write(3, 1);
  EXPECT_EQ(type_of(files::wanted("/x")), ColumnType::number(Dtype::float32));
  EXPECT_THAT(files::rows_of(section(), {files::wanted("/x")}),
              ElementsAre("0", "1", "2"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Halves,
                         testing::Values(std::pair(Dtype::float16, false),
                                         std::pair(Dtype::float16, true),
                                         std::pair(Dtype::bfloat16, false),
                                         std::pair(Dtype::bfloat16, true)),
                         [](const auto& of) {
                           return std::string(name_of(of.param.first)) +
                                  (of.param.second ? "_big" : "");
                         });

}  // namespace
}  // namespace penstock::hdf5
