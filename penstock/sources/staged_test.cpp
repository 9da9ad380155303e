#include "penstock/sources/staged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/files/test_folder.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StagedTest : public testing::Test {
 protected:
  SourceSpec spec(const std::string& kind, const Json& path) const {
    Json section;
    section["kind"] = kind;
    section["path"] = path;
    section["stage"] = folder_.path("copies");
    return parse_source_spec(section, "source");
  }
  static std::vector<std::string> places(const SourceSpec& spec) {
    std::vector<std::string> places;
    for (const StagedFile& file : staged_files(spec)) places.push_back(file.to);
    return places;
  }
  static std::string refusal(const SourceSpec& spec) {
    try {
      staged_files(spec);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  }
  static std::vector<std::string> copies_of(SourceSpec spec) {
    spec.staged_in = "/copy";
    const SourceSpec copy = spec_of_copy(spec);
    return std::any_cast<FileSettings>(&copy.own) == nullptr
               ? std::vector{copy.path}
               : paths_of(copy);
  }

  files::TestFolder folder_;
};

TEST_F(StagedTest, OfAFolderEverythingBelowItIsCopied) {
  folder_.write("d/b.csv", "x\n1\n");
  folder_.write("d/day=3/a.csv", "x\n2\n");
  folder_.write("d/.hidden", "3");
  const SourceSpec csv = spec("csv", folder_.path("d"));
  EXPECT_THAT(places(csv),
              ElementsAre("0/.hidden", "0/b.csv", "0/day=3/a.csv"));
  EXPECT_THAT(copies_of(csv), ElementsAre("/copy/0"));
}

TEST_F(StagedTest, OfAPatternAndAListWhatTheyName) {
  folder_.write("d/a.csv", "");
  folder_.write("d/e/b.csv", "");
  folder_.write("d/c.txt", "");
  folder_.write("z/one.zarr/.zarray", "");
  folder_.write("z/one.zarr/0.0", "");
  const SourceSpec several = spec(
      "csv",
      Json(Json::Array{folder_.path("d/*.csv"), folder_.path("d/e/b.csv")}));
  EXPECT_THAT(places(several), ElementsAre("0/a.csv", "1/b.csv"));
  EXPECT_THAT(copies_of(several),
              ElementsAre("/copy/0/*.csv", "/copy/1/b.csv"));
  // A pattern may name folders.
  const SourceSpec zarr = spec("zarr", folder_.path("z/*.zarr"));
  EXPECT_THAT(places(zarr),
              ElementsAre("0/one.zarr/.zarray", "0/one.zarr/0.0"));
}

TEST_F(StagedTest, AFileOfRowsBesideTheseComesWithThem) {
  folder_.write("x.h5", "");
  folder_.write("l/y.h5", "");
  auto with = [&](const std::string& labels) {
    Json section;
    section["kind"] = "hdf5";
    section["path"] = folder_.path("x.h5");
    section["labels"] = folder_.path(labels);
    section["stage"] = folder_.path("copies");
    return parse_source_spec(section, "source");
  };
  SourceSpec hdf5 = with("l/y.h5");
  EXPECT_THAT(places(hdf5), ElementsAre("0/x.h5", "labels/y.h5"));
  EXPECT_NE(staged_name(hdf5), staged_name(with("l/z.h5")));
  hdf5.staged_in = "/copy";
  const SourceSpec copy = spec_of_copy(hdf5);
  EXPECT_EQ(std::any_cast<FileSettings>(&copy.own)->row_labels,
            "/copy/labels/y.h5");
}

TEST_F(StagedTest, TheIndexOfATokenStoreComesWithIt) {
  folder_.write("a.bin", "");
  folder_.write("a.idx", "");
  folder_.write("b.ds", "");
  folder_.write("b.ds.index", "");
  EXPECT_THAT(places(spec("token_store", folder_.path("a.bin"))),
              ElementsAre("0/a.bin", "0/a.idx"));
  EXPECT_THAT(places(spec("token_store", folder_.path("b.ds"))),
              ElementsAre("0/b.ds", "0/b.ds.index"));
}

TEST_F(StagedTest, ADatabaseThatIsBeingWrittenIsRefused) {
  const std::string file = folder_.write("d.sqlite", "x");
  EXPECT_THAT(places(spec("sqlite", file)), ElementsAre("0/d.sqlite"));
  EXPECT_THAT(copies_of(spec("sqlite", file)), ElementsAre("/copy/0/d.sqlite"));
  folder_.write("d.sqlite-wal", "");
  EXPECT_THAT(places(spec("sqlite", file)), ElementsAre("0/d.sqlite"));
  folder_.write("d.sqlite-wal", "abc");
  EXPECT_THAT(refusal(spec("sqlite", file)),
              AllOf(HasSubstr("d.sqlite-wal holds 3 bytes"),
                    HasSubstr("close the database in the program")));
}

TEST_F(StagedTest, WhatIsNotThereOrNotHereIsRefused) {
  EXPECT_THAT(refusal(spec("csv", folder_.path("none.csv"))),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(refusal(spec("csv", folder_.path("*.csv"))),
              HasSubstr("matches no file"));
  EXPECT_THAT(refusal(spec("parquet", "s3://bucket/a.parquet")),
              HasSubstr("in an object store"));
}

TEST_F(StagedTest, AnotherVersionOfAFileHasAnotherText) {
  const std::string file = folder_.write("a.csv", "x\n1\n");
  const std::string first = staged_file(file, "0/a.csv").version;
  EXPECT_EQ(staged_file(file, "0/a.csv").version, first);
  std::filesystem::remove(file);
  folder_.write("a.csv", "x\n2\n");
  EXPECT_NE(staged_file(file, "0/a.csv").version, first);
}

TEST_F(StagedTest, CopiesOfDifferentPlacesHaveDifferentNames) {
  const SourceSpec a = spec("csv", "d"), b = spec("csv", "e");
  EXPECT_EQ(staged_name(a), staged_name(spec("csv", "./d")));
  EXPECT_NE(staged_name(a), staged_name(b));
  EXPECT_EQ(staged_name(a).size(), 32u);
}

TEST_F(StagedTest, AServerHasNoFilesToCopy) {
  Json section;
  section["kind"] = "postgres";
  section["uri"] = "postgresql://h/d";
  section["stage"] = "ram";
  EXPECT_THROW(parse_source_spec(section, "source"), Error);
}

}  // namespace
}  // namespace penstock
