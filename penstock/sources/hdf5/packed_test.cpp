// Numbers that attributes of the CF conventions pack, as in files of netCDF-4.
// What is expected is what xarray.open_dataset of 2026.9 gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::wanted;
using ::testing::ElementsAre;
using ::testing::IsNan;

class PackedNumbersOfHdf5 : public testing::Test {
 protected:
  Json section() const {
    return files::section_of("hdf5", folder_.path("a.nc"));
  }
  /// The values of a column of numbers, in this dtype.
  template <class Number = double>
  std::vector<double> values(const std::string& name, Dtype dtype) const {
    auto source = files::open_files(section(), {wanted(name)});
    EXPECT_EQ(source->types()[0], ColumnType::number(dtype)) << name;
    Block block;
    open_checked_reader(*source)->read(std::vector<std::int64_t>{0, 1, 2, 3},
                                       block);
    std::vector<double> all;
    for (const Number value : block.columns[0].values.as<Number>())
      all.push_back(static_cast<double>(value));
    return all;
  }

  files::TestFolder folder_;
};

TEST_F(PackedNumbersOfHdf5, AreScaledAndMissingOnesAreNaN) {
  {
    TestFile file(folder_.path("a.nc"));
    file.write_as("t", H5T_STD_I16LE, {-100, 37, -9999, 259});
    file.number("t", "scale_factor", H5T_IEEE_F64LE, 0.01);
    file.attribute("t", "add_offset", std::vector<double>{1}, {1});
    file.number("t", "_FillValue", H5T_STD_I16LE, -9999);
    file.number("t", "valid_max", H5T_STD_I16LE, 100);
  }
  EXPECT_THAT(values("/t", Dtype::float64),
              ElementsAre(0.0, 1.37, IsNan(), 3.59));
}

TEST_F(PackedNumbersOfHdf5, OfSinglePrecisionAreComputedInIt) {
  {
    TestFile file(folder_.path("a.nc"));
    for (const char* name : {"both", "one", "mixed"}) {
      file.write_as(name, H5T_STD_I16BE, {1, 2, 3, 30000});
      file.number(name, "scale_factor", H5T_IEEE_F32BE, 0.1);
    }
    file.number("both", "add_offset", H5T_IEEE_F32LE, 0.7);
    file.number("mixed", "add_offset", H5T_IEEE_F64LE, 0.5);
  }
  const float scale = 0.1F, offset = 0.7F;
  EXPECT_THAT(values<float>("/both", Dtype::float32),
              ElementsAre(1 * scale + offset, 2 * scale + offset,
                          3 * scale + offset, 30000 * scale + offset));
  EXPECT_THAT(values<float>("/one", Dtype::float32),
              ElementsAre(1 * scale, 2 * scale, 3 * scale, 30000 * scale));
  EXPECT_THAT(
      values("/mixed", Dtype::float64),
      ElementsAre(1 * double{scale} + 0.5, 2 * double{scale} + 0.5,
                  3 * double{scale} + 0.5, 30000 * double{scale} + 0.5));
}

TEST_F(PackedNumbersOfHdf5, MayHaveSeveralValuesThatAreMissing) {
  {
    TestFile file(folder_.path("a.nc"));
    file.write_as("t", H5T_STD_I32LE, {1, -1, -2, -3});
    file.attribute("t", "missing_value", std::vector<std::int64_t>{-1, -3},
                   {2});
    file.number("t", "_FillValue", H5T_STD_I32LE, -2);
    file.write_as("f", H5T_IEEE_F32LE, {1, 1e20, 0.1F, 4});
    file.number("f", "_FillValue", H5T_IEEE_F32LE, 1e20);
    file.number("f", "missing_value", H5T_IEEE_F64LE, 0.1);
  }
  EXPECT_THAT(values("/t", Dtype::float64),
              ElementsAre(1, IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(values<float>("/f", Dtype::float32),
              ElementsAre(1, IsNan(), 0.1F, 4))
      << "0.1 of double precision is not that of the file";
}

TEST_F(PackedNumbersOfHdf5, TakeTheSignThatTheyAreSaidToHave) {
  {
    TestFile file(folder_.path("a.nc"));
    file.write_as("u", H5T_STD_I8LE, {-4, -1, 0, 3});
    file.write_as("filled", H5T_STD_I8LE, {-4, -1, 0, 3});
    file.number("filled", "_FillValue", H5T_STD_I8LE, -1);
    for (const char* name : {"u", "filled"})
      file.text(name, "_Unsigned", "true");
    file.write_as("s", H5T_STD_U16LE, {65535, 32768, 1, 2});
    file.text("s", "_Unsigned", "false");
    file.write_as("other", H5T_STD_I8LE, {-4, -1, 0, 3});
    file.text("other", "_Unsigned", "True");
  }
  EXPECT_THAT(values<std::uint8_t>("/u", Dtype::uint8),
              ElementsAre(252, 255, 0, 3));
  EXPECT_THAT(values<float>("/filled", Dtype::float32),
              ElementsAre(252, IsNan(), 0, 3));
  EXPECT_THAT(values<std::int16_t>("/s", Dtype::int16),
              ElementsAre(-1, -32768, 1, 2));
  EXPECT_THAT(values<std::int8_t>("/other", Dtype::int8),
              ElementsAre(-4, -1, 0, 3));
}

TEST_F(PackedNumbersOfHdf5, StayAsTheyAreWhereAnAttributeSaysNothing) {
  {
    TestFile file(folder_.path("a.nc"));
    file.write("x", std::vector<std::int64_t>{1, 2, 3, 4});
    file.attribute("x", "scale_factor", std::vector<double>{1, 2, 3}, {3});
    file.text("x", "missing_value", "none");
    file.write_as("f", H5T_IEEE_F32LE, {1, 2, 3, NAN});
    file.number("f", "_FillValue", H5T_IEEE_F32LE, NAN);
  }
  testing::internal::CaptureStderr();
  EXPECT_THAT(values<std::int64_t>("/x", Dtype::int64),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr("a.nc, /x': its scale_factor"),
                             testing::HasSubstr("is not one number")));
  EXPECT_THAT(values<float>("/f", Dtype::float32),
              ElementsAre(1, 2, 3, IsNan()));
}

}  // namespace
}  // namespace penstock::hdf5
