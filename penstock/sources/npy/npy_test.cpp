// Arrays as numpy and safetensors write them (tests/data/arrays/make.py), good
// and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/files/test_damage.h"

namespace penstock::npy {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string data(const std::string& name) {
  return std::string(PENSTOCK_TEST_DATA) + "/arrays/" + name;
}

Json section(const std::string& path) { return files::section_of("npy", path); }

const std::vector<std::string> kX = {"0 1 2", "10 11 12", "20 21 22",
                                     "30 31 32", "40 41 42"};
const std::vector<std::string> kNames = {"hum", "", "chirp", "Knall", "größe"};

TEST(Npy, RowsAreThoseOfNumpyInAnyOrderOfBytesAndDimensions) {
  EXPECT_EQ(rows_of(section(data("c.npy")), {wanted("array")}), kX);
  EXPECT_EQ(rows_of(section(data("fortran.npy")), {wanted("array")}), kX);
  EXPECT_EQ(rows_of(section(data("big.npy")), {wanted("array")}), kX);
  EXPECT_THAT(rows_of(section(data("cube.npy")), {wanted("array")}),
              ElementsAre("0 1 2 3 4 5", "6 7 8 9 10 11", "12 13 14 15 16 17",
                          "18 19 20 21 22 23", "24 25 26 27 28 29"));
  EXPECT_THAT(rows_of(section(data("flags.npy")), {wanted("array")}),
              ElementsAre("0", "0", "1", "1", "1"));
}

TEST(Npy, TextsOfEitherKindAreTexts) {
  EXPECT_EQ(rows_of(section(data("letters.npy")), {wanted("array")}), kNames);
  EXPECT_EQ(rows_of(section(data("bytes.npy")), {wanted("array")}), kNames);
}

TEST(Npy, ArraysOfOneFileAreColumns) {
  for (const char* name : {"stored.npz", "packed.npz"})
    EXPECT_THAT(rows_of(section(data(name)),
                        {wanted("x"), wanted("y"), wanted("letters")}),
                ElementsAre("0 1 2 | 0 | hum", "10 11 12 | 1 | ",
                            "20 21 22 | 2 | chirp", "30 31 32 | 3 | Knall",
                            "40 41 42 | 4 | größe"))
        << name;
  EXPECT_THAT(
      rows_of(section(data("t.safetensors")), {wanted("x"), wanted("y")}),
      ElementsAre("0 1 2 | 0", "10 11 12 | 1", "20 21 22 | 2", "30 31 32 | 3",
                  "40 41 42 | 4"));
}

TEST(Npy, FilesAreColumnsWhereArraysNamesThem) {
  Json of = section(data(""));
  of["arrays"]["x"] = "c.npy";
  of["arrays"]["name"] = "letters.npy";
  EXPECT_THAT(rows_of(of, {wanted("name"), wanted("x")}),
              ElementsAre("hum | 0 1 2", " | 10 11 12", "chirp | 20 21 22",
                          "Knall | 30 31 32", "größe | 40 41 42"));
  of["arrays"]["x"] = "long.npy";
  EXPECT_THAT(rows_of(of, {wanted("name"), wanted("x")}),
              ElementsAre(HasSubstr("arrays.lengths")));
  of["arrays"]["x"] = "?*.npy";
  EXPECT_THAT(rows_of(of, {wanted("x")}),
              ElementsAre(HasSubstr("arrays.files")));
}

TEST(Npy, SeveralFilesFollowOneAnother) {
  files::TestFolder folder;
  for (const char* name : {"a.npy", "b.NPY"})
    folder.write(name, files::TestFolder::read(data("c.npy")));
  EXPECT_THAT(
      rows_of(section(folder.path("")), {wanted("array", 2, 1)}),
      ElementsAre("0 1 2 10 11 12", "10 11 12 20 21 22", "20 21 22 30 31 32",
                  "30 31 32 40 41 42", "0 1 2 10 11 12", "10 11 12 20 21 22",
                  "20 21 22 30 31 32", "30 31 32 40 41 42"));
  Json of = section(data("c.npy"));
  of["path"] = Json(Json::Array{data("c.npy"), data("big.npy")});
  EXPECT_THAT(rows_of(of, {wanted("array")}),
              ElementsAre(HasSubstr("files.schema")));
}

TEST(Npy, WindowsOfALongArrayAreRows) {
  EXPECT_THAT(
      rows_of(section(data("long.npy")), {wanted("array", 8, 5)}),
      ElementsAre("0 1 2 3 4 5 6 7", "5 6 7 8 9 10 11 12",
                  "10 11 12 13 14 15 16 17", "15 16 17 18 19 20 21 22"));
  EXPECT_THAT(rows_of(section(data("packed.npz")), {wanted("long", 4, 9)}),
              ElementsAre("0 1 2 3", "9 10 11 12", "18 19 20 21"));
  EXPECT_THAT(rows_of(section(data("c.npy")), {wanted("array", 2, 2)}),
              ElementsAre("0 1 2 10 11 12", "20 21 22 30 31 32"));
  EXPECT_THAT(rows_of(section(data("fortran.npy")), {wanted("array", 2, 3)}),
              ElementsAre("0 1 2 10 11 12", "30 31 32 40 41 42"));
  EXPECT_THAT(rows_of(section(data("c.npy")), {wanted("array", 6, 1)}),
              ElementsAre());
}

TEST(Npy, RowsOfAMappedFileAreLentWithoutACopy) {
  auto source = files::open_files(section(data("c.npy")), {wanted("array")});
  auto reader = open_checked_reader(*source);
  int blocks = 0;
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {}, [&](KeyList&, Block& block) {
      EXPECT_FALSE(block.columns[0].values.owned());
      ++blocks;
      return true;
    });
  EXPECT_EQ(blocks, 1);
}

TEST(Npy, WhatNoTensorHoldsIsRefusedByName) {
  for (auto [name, expected] : {std::pair("objects.npy", "Python objects"),
                                std::pair("fields.npy", "named fields"),
                                std::pair("complex.npy", "'<c8'"),
                                std::pair("single.npy", "single value")})
    EXPECT_THAT(rows_of(section(data(name)), {wanted("array")}),
                ElementsAre(testing::AllOf(HasSubstr("arrays.type"),
                                           HasSubstr(expected))));
  EXPECT_THAT(rows_of(section(data("stored.npz")), {wanted("objects")}),
              ElementsAre(HasSubstr("Python objects")));
  EXPECT_EQ(rows_of(section(data("stored.npz")), {wanted("x")}), kX)
      << "other arrays of the file are read";
  EXPECT_THAT(rows_of(section(data("stored.npz")), {wanted("one")}),
              ElementsAre(HasSubstr("source.unknown_column")));
}

TEST(Npy, FilesThatContradictThemselvesAreNamed) {
  files::TestFolder folder;
  const std::string good = files::TestFolder::read(data("c.npy"));
  auto bad = [&](const std::string& bytes) {
    return rows_of(section(folder.write("a.npy", bytes)), {wanted("array")})
        .back();
  };
  EXPECT_THAT(bad(""), HasSubstr("files.damaged"));
  EXPECT_THAT(bad(good.substr(0, good.size() - 1)), HasSubstr("needs more"));
  EXPECT_THAT(bad(good.substr(0, 40)), HasSubstr("within its header"));
  std::string later = good;
  later[6] = 9;
  EXPECT_THAT(bad(later), HasSubstr("version 9"));
  std::string huge = good;
  huge.replace(huge.find("(5, 3)"), 6, "(5,9999999999999999)");
  EXPECT_THAT(bad(huge), HasSubstr("files.damaged"));
}

TEST(Npy, RowsThatHoldNoValuesAreRefused) {
  files::TestFolder folder;
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 0), "
      "}\n";
  const std::string npy = std::string("\x93NUMPY\1\0", 8) +
                          static_cast<char>(header.size()) + '\0' + header;
  EXPECT_THAT(rows_of(section(folder.write("a.npy", npy)), {wanted("array")}),
              ElementsAre(testing::AllOf(
                  HasSubstr("arrays.type"),
                  HasSubstr("1000000000000 rows hold no values"))));

  std::string tensors =
      R"({"x":{"dtype":"F32","shape":[1000000000000,0],"data_offsets":[0,0]},)"
      R"("y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  tensors = std::string(1, static_cast<char>(tensors.size())) +
            std::string(7, '\0') + tensors + "\1\2";
  const Json of = section(folder.write("a.safetensors", tensors));
  EXPECT_THAT(rows_of(of, {wanted("x")}),
              ElementsAre(HasSubstr("rows hold no values")));
  EXPECT_THAT(rows_of(of, {wanted("y")}), ElementsAre("1", "2"));
  const Schema schema = read_schema(parse_source_spec(of, "source"));
  ASSERT_EQ(schema.left_out.size(), 1u);
  EXPECT_EQ(schema.left_out[0].name, "x");
}

TEST(Npy, TensorsThatShareBytesAreRefused) {
  files::TestFolder folder;
  std::string tensors =
      R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
      R"("y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})";
  tensors = std::string(1, static_cast<char>(tensors.size())) +
            std::string(7, '\0') + tensors + "\1\2\3";
  EXPECT_THAT(
      rows_of(section(folder.write("a.safetensors", tensors)), {wanted("x")})
          .back(),
      testing::AllOf(HasSubstr("files.damaged"), HasSubstr("'x' and 'y'"),
                     HasSubstr("share bytes")));
}

TEST(Npy, RowsOfADamagedMemberAreBad) {
  files::TestFolder folder;
  std::string bytes = files::TestFolder::read(data("packed.npz"));
  // The CRC of the member in the directory at the end.
  const auto entry = bytes.rfind("y.npy") - 46;
  bytes[entry + 16] = static_cast<char>(~bytes[entry + 16]);
  const Json of = section(folder.write("packed.npz", bytes));
  EXPECT_THAT(
      rows_of(of, {wanted("y")}),
      testing::AllOf(testing::SizeIs(5),
                     testing::Each(testing::AllOf(testing::StartsWith("null ("),
                                                  HasSubstr("member 'y.npy'"),
                                                  HasSubstr("CRC")))));
  EXPECT_EQ(rows_of(of, {wanted("x")}), kX);
}

TEST(Npy, GivesRowsOrAnErrorThatNamesTheFileWhenDamaged) {
  files::TestFolder folder;
  for (const char* name : {"c.npy", "letters.npy", "fortran.npy", "packed.npz",
                           "stored.npz", "t.safetensors"}) {
    SCOPED_TRACE(name);
    const bool one = std::string(name).ends_with(".npy");
    const std::string path =
        folder.write(name, files::TestFolder::read(data(name)));
    files::read_damaged(section(path), path, files::damages(200), 1,
                        one ? std::vector<std::string>{"array"}
                            : std::vector<std::string>{"x", "y"});
  }
}

}  // namespace
}  // namespace penstock::npy
