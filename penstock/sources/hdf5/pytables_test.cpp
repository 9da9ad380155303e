// Tables as pandas.DataFrame.to_hdf(format="table") writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;

struct Row {
  std::int64_t index;
  double numbers[2];
  char texts[1][3];
};

void write_table(const std::string& path) {
  const Row rows[] = {{5, {1, 10}, {{'u', 'v', '\0'}}},
                      {6, {2, 20}, {{'w', '\0', '\0'}}}};
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(Row));
  const hsize_t two = 2, one = 1;
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 3);
  H5Tinsert(type, "index", offsetof(Row, index), H5T_NATIVE_INT64);
  H5Tinsert(type, "values_block_0", offsetof(Row, numbers),
            H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &two));
  H5Tinsert(type, "values_block_1", offsetof(Row, texts),
            H5Tarray_create2(text, 1, &one));
  const hid_t space = H5Screate_simple(1, &two, nullptr);
  const hid_t set = H5Dcreate2(file, "df/table", type, space, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
}

class TablesOfPandas : public testing::Test {
 protected:
  /// `names`: of the columns of the numbers, as pandas pickles them.
  void write(const std::string& names) const {
    {
      TestFile file(folder_.path("t.h5"));
      file.group("/df");
      file.group("/df/_i_table");
      file.text("/df/_i_table", "CLASS", "TINDEX");
      file.write("/df/_i_table/sorted", std::vector<std::int64_t>(131, 1));
    }
    write_table(folder_.path("t.h5"));
    const hid_t file =
        H5Fopen(folder_.path("t.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    TestFile open(file);
    open.text("/df/table", "CLASS", "TABLE");
    open.text("/df/table", "FIELD_0_NAME", "index");
    open.text("/df/table", "values_block_0_kind", names);
    open.text("/df/table", "values_block_1_kind", "(lp0\nVs\np1\na.");
  }
  Json section() const {
    return files::section_of("hdf5", folder_.path("t.h5"));
  }
  std::vector<std::string> columns() const {
    std::vector<std::string> names;
    for (const ColumnInfo& one :
         read_schema(parse_source_spec(section(), "source")).columns)
      names.push_back(one.name);
    return names;
  }

  files::TestFolder folder_;
};

TEST_F(TablesOfPandas, HaveTheColumnsOfTheFrame) {
  write("(lp0\nVa\np1\naI7\na.");
  EXPECT_THAT(columns(), ElementsAre("/df/table.index", "/df/table.a",
                                     "/df/table.7", "/df/table.s"));
  EXPECT_THAT(
      rows_of(section(), {wanted("/df/table.index"), wanted("/df/table.a"),
                          wanted("/df/table.7"), wanted("/df/table.s")}),
      ElementsAre("5 | 1 | 10 | uv", "6 | 2 | 20 | w"));
}

TEST_F(TablesOfPandas, HaveBlocksWhereTheNamesOfColumnsAreNotPlain) {
  for (const char* names : {"(lp0\nVindex\np1\naVb\np2\na.", "(lp0\nVa\np1\na.",
                            "(lp0\nV\\u0107\naVb\na.", "\x80\x04]."}) {
    write(names);
    EXPECT_THAT(rows_of(section(), {wanted("/df/table.values_block_0")}),
                ElementsAre("1 10", "2 20"))
        << names;
  }
}

TEST_F(TablesOfPandas, TheIndexOfPyTablesIsLeftOutByItsName) {
  write("(lp0\nVa\np1\naVb\np2\na.");
  const Schema schema = read_schema(parse_source_spec(section(), "source"));
  ASSERT_EQ(schema.left_out.size(), 1u);
  EXPECT_EQ(schema.left_out[0].name, "/df/_i_table");
}

}  // namespace
}  // namespace penstock::hdf5
