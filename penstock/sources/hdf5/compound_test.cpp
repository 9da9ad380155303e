// Compound values whose members hold values of variable length, at any depth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <tuple>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr hsize_t kRows = 4;

hid_t text_type() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  return type;
}

hid_t array_of(hid_t type, hsize_t count) {
  return H5Tarray_create2(type, 1, &count);
}

hid_t compound_of(
    std::size_t bytes,
    std::vector<std::tuple<const char*, std::size_t, hid_t>> members) {
  const hid_t type = H5Tcreate(H5T_COMPOUND, bytes);
  for (const auto& [name, at, member] : members)
    H5Tinsert(type, name, at, member);
  return type;
}

class Compounds : public testing::Test {
 protected:
  /// Writes `/d`, of elements { int32 id; middle; float64 x }, with padding;
  /// `set` fills the middle of an element.
  template <class Middle>
  void write(hid_t middle, const std::function<void(Middle&, int)>& set,
             hsize_t chunk = 0, unsigned deflate = 0) {
    struct Element {
      std::int32_t id;
      Middle middle;
      double x;
    };
    const hid_t type = compound_of(
        sizeof(Element), {{"id", offsetof(Element, id), H5T_NATIVE_INT32},
                          {"m", offsetof(Element, middle), middle},
                          {"x", offsetof(Element, x), H5T_NATIVE_DOUBLE}});
    std::vector<Element> elements(kRows);
    for (int row = 0; row < static_cast<int>(kRows); ++row) {
      elements[static_cast<std::size_t>(row)] = {row, {}, 10.0 * row};
      set(elements[static_cast<std::size_t>(row)].middle, row);
    }
    const hid_t file = H5Fcreate(folder_.path("c.h5").c_str(), H5F_ACC_TRUNC,
                                 H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t rows = kRows;
    const hid_t space = H5Screate_simple(1, &rows, nullptr);
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk > 0) H5Pset_chunk(how, 1, &chunk);
    if (deflate > 0) H5Pset_deflate(how, deflate);
    const hid_t data =
        H5Dcreate2(file, "d", type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements.data());
    H5Dclose(data);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
  }
  std::vector<std::string> rows(const std::vector<std::string>& members) const {
    std::vector<ColumnRequest> columns;
    for (const std::string& member : members)
      columns.push_back(wanted("/d." + member));
    return rows_of(files::section_of("hdf5", folder_.path("c.h5")), columns);
  }

  files::TestFolder folder_;
  const char* const texts_[kRows] = {"a", "", "ccc", "dd"};
};

struct Nested {
  std::int16_t k;
  const char* s;
};

hid_t nested_type() {
  return compound_of(sizeof(Nested),
                     {{"k", offsetof(Nested, k), H5T_NATIVE_INT16},
                      {"s", offsetof(Nested, s), text_type()}});
}

TEST_F(Compounds, WithATextOneLevelDeeperAreReadHoweverTheyAreStored) {
  for (auto [chunk, deflate] :
       {std::pair(0, 0U), std::pair(3, 0U), std::pair(2, 4U)}) {
    write<Nested>(
        nested_type(),
        [&](Nested& to, int row) {
          to = {static_cast<std::int16_t>(-row), texts_[row]};
        },
        static_cast<hsize_t>(chunk), deflate);
    EXPECT_THAT(rows({"id", "m.k", "m.s", "x"}),
                ElementsAre("0 | 0 | a | 0", "1 | -1 |  | 10",
                            "2 | -2 | ccc | 20", "3 | -3 | dd | 30"))
        << chunk;
  }
}

TEST_F(Compounds, WithTextsTwoLevelsDeepAreRead) {
  struct Outer {
    Nested n;
    const char* s;
  };
  write<Outer>(
      compound_of(sizeof(Outer), {{"n", offsetof(Outer, n), nested_type()},
                                  {"s", offsetof(Outer, s), text_type()}}),
      [&](Outer& to, int row) {
        to = {{static_cast<std::int16_t>(row), texts_[row]},
              texts_[kRows - 1 - static_cast<unsigned>(row)]};
      });
  EXPECT_THAT(rows({"id", "m.n.s", "m.s", "x"}),
              ElementsAre("0 | a | dd | 0", "1 |  | ccc | 10",
                          "2 | ccc |  | 20", "3 | dd | a | 30"));
}

TEST_F(Compounds, KeepTheNeighboursOfTextsThatAreNotRead) {
  using Pair = std::array<const char*, 2>;
  write<Pair>(array_of(text_type(), 2), [&](Pair& to, int row) {
    to = {texts_[row], "b"};
  });
  EXPECT_THAT(rows({"id", "x"}),
              ElementsAre("0 | 0", "1 | 10", "2 | 20", "3 | 30"));
  EXPECT_THAT(rows({"m"}),
              ElementsAre(HasSubstr("several values of type text")));

  using Both = std::array<Nested, 3>;
  write<Both>(array_of(nested_type(), 3), [&](Both& to, int row) {
    to.fill({1, texts_[row]});
  });
  EXPECT_THAT(rows({"id", "x"}),
              ElementsAre("0 | 0", "1 | 10", "2 | 20", "3 | 30"));
}

TEST_F(Compounds, WithNumbersOfVariableLengthOneLevelDeeperAreRead) {
  struct Listed {
    std::int16_t k;
    hvl_t v;
  };
  float numbers[] = {1, 2, 3};
  write<Listed>(
      compound_of(sizeof(Listed), {{"k", offsetof(Listed, k), H5T_NATIVE_INT16},
                                   {"v", offsetof(Listed, v),
                                    H5Tvlen_create(H5T_NATIVE_FLOAT)}}),
      [&](Listed& to, int row) {
        to = {7, {static_cast<std::size_t>(row), numbers}};
      });
  EXPECT_THAT(rows({"id", "m.k", "m.v", "x"}),
              ElementsAre("0 | 7 |  | 0", "1 | 7 | 1 | 10", "2 | 7 | 1 2 | 20",
                          "3 | 7 | 1 2 3 | 30"));
}

TEST_F(Compounds, WithBitFieldsGiveTheirBitsAsANumber) {
  write<std::uint8_t>(H5T_STD_B8LE, [](std::uint8_t& to, int row) {
    to = static_cast<std::uint8_t>(200 + row);
  });
  EXPECT_THAT(rows({"id", "m", "x"}),
              ElementsAre("0 | 200 | 0", "1 | 201 | 10", "2 | 202 | 20",
                          "3 | 203 | 30"));
}

}  // namespace
}  // namespace penstock::hdf5
