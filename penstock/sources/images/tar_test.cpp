// Tar files, made here byte by byte.
#include <gmock/gmock.h>

#include <cstdio>

#include "penstock/base/log.h"
#include "penstock/base/settings.h"
#include "penstock/sources/files/test_folder.h"

namespace penstock::images {
namespace {

using files::TestFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class TarTest : public testing::Test {
 protected:
  /// Adds a member; `size` where the header says something else than there is.
  void add(const std::string& name, const std::string& contents,
           char type = '0', std::string size = "") {
    std::string header(512, '\0');
    char octal[16];
    std::snprintf(octal, sizeof(octal), "%011zo", contents.size());
    header.replace(0, name.size(), name);
    if (size.empty()) size = octal;
    header.replace(124, size.size(), size);
    header.replace(148, 8, 8, ' ');
    header[156] = type;
    header.replace(257, 5, "ustar");
    std::uint32_t sum = 0;
    for (char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(octal, sizeof(octal), "%06o", sum);
    header.replace(148, 7, octal, 7);
    tar_ += header + contents +
            std::string((512 - contents.size() % 512) % 512, '\0');
  }
  /// "name class" of each picture.
  std::vector<std::string> pictures() {
    folder_.write("a.tar", tar_ + end_);
    Json section;
    section["kind"] = "images";
    section["path"] = folder_.path("a.tar");
    if (!classes_.empty()) section["classes"] = settings::list_of(classes_);
    auto source = open_source(
        parse_source_spec(section, "source"),
        {{.column = "path", .as = ReadAs::value, .setting = "fields.x"},
         {.column = "class",
          .as = ReadAs::value,
          .setting = "fields.y",
          .coded = true}});
    values_ = source->schema().find("class")->values;
    std::vector<std::string> all;
    auto reader = open_checked_reader(*source);
    for (const Partition& part : source->partitions(1))
      reader->scan(part, {.rows = 8}, [&](KeyList&, Block& block) {
        const Column &path = block.columns[0], &of_class = block.columns[1];
        for (std::int64_t row = 0; row < block.rows; ++row)
          all.push_back(
              std::string(path.text(row)) + " " +
              (of_class.valid(row) ? std::string(of_class.text(row)) : "-"));
        return true;
      });
    return all;
  }
  std::string refused(const std::string& code = "images.tar") {
    try {
      pictures();
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, code);
      return error.what();
    }
    ADD_FAILURE() << "it was read";
    return {};
  }

  TestFolder folder_;
  std::string tar_, end_ = std::string(1024, '\0');
  std::vector<std::string> classes_, values_;
};

TEST_F(TarTest, TheClassIsTheFolderThatAMemberIsInOrWhatStandsBesideIt) {
  add("train/", "", '5');
  add("train/ant/1.jpg", "x");
  add("./train/bee/2.jpg", "y");
  add("loose.png", "z");
  add("key.jpg", "w");
  add("key.cls", "7\n");
  EXPECT_THAT(pictures(),
              ElementsAre("key.jpg 7", "loose.png -", "train/ant/1.jpg ant",
                          "train/bee/2.jpg bee"));
}

TEST_F(TarTest, PicturesWithoutAnyClassHaveNoneToLearn) {
  add("loose.png", "z");
  EXPECT_THAT(
      refused("images.none"),
      HasSubstr("the file has 1 picture, but neither a '.cls' member nor "
                "a folder; write a member NAME.cls beside each"));
}

TEST_F(TarTest, ClassesOfWebDatasetAreInTheOrderOfTheirNumbers) {
  for (const char* number : {"0", "1", "10", "11", "2"}) {
    add(std::string("k") + number + ".jpg", "x");
    add(std::string("k") + number + ".cls", number);
  }
  EXPECT_THAT(pictures(), ElementsAre("k0.jpg 0", "k1.jpg 1", "k10.jpg 10",
                                      "k11.jpg 11", "k2.jpg 2"));
  EXPECT_THAT(values_, ElementsAre("0", "1", "2", "10", "11"));
  add("5/loose.jpg", "x");
  pictures();
  EXPECT_THAT(values_, ElementsAre("0", "1", "10", "11", "2", "5"));
}

TEST_F(TarTest, AClassThatIsNotDeclaredIsNamedWithItsMember) {
  add("key.jpg", "x");
  add("key.cls", "7");
  classes_ = {"1"};
  EXPECT_THAT(refused("images.unknown_class"),
              HasSubstr("a.tar, member 'key.jpg'"));
}

TEST_F(TarTest, ANegativeSizeIsADamagedHeader) {
  add("a.jpg", "", '0', "-0000002000");
  EXPECT_THAT(refused(), HasSubstr("byte 0 has a damaged header"));
}

TEST_F(TarTest, APictureThatIsALinkToAnotherMemberIsNotLeftOutSilently) {
  add("a.jpg", "x");
  const std::string first = tar_;
  for (char kind : {'1', '2'}) {
    tar_ = first;
    add("b.jpg", "", kind);
    EXPECT_THAT(refused(), HasSubstr("'b.jpg' is a link to another member"));
  }
}

TEST_F(TarTest, MembersOfWebDatasetThatAreNotReadAreNamedOnce) {
  std::vector<std::string> told;
  set_log_writer(
      [&](LogLevel, std::string_view message) { told.emplace_back(message); });
  for (const char* key : {"1", "2"}) {
    add(std::string(key) + ".jpg", "x");
    add(std::string(key) + ".cls", key);
    add(std::string(key) + ".json", "{}");
    add(std::string(key) + ".txt", "a caption");
  }
  EXPECT_THAT(pictures(), ElementsAre("1.jpg 1", "2.jpg 2"));
  set_log_writer({});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0],
              HasSubstr(": 4 members are not read, '1.json', '1.txt' among"));
}

TEST_F(TarTest, TwoPicturesOfOneSampleAreRefusedByTheirNames) {
  for (const char* key : {"s1", "s2"}) {
    add(std::string(key) + ".image.png", "x");
    add(std::string(key) + ".mask.png", "y");
  }
  EXPECT_THAT(refused(), HasSubstr("the members 's2.image.png' and "
                                   "'s2.mask.png' are pictures of one sample, "
                                   "'s2', but a row has one picture; unpack"));
  tar_.clear();
  add("train/s1.jpg", "x");
  add("train/s1.png", "y");
  add("train/s1.cls", "0");
  EXPECT_THAT(refused(), HasSubstr("'train/s1.jpg' and 'train/s1.png' are "
                                   "pictures of one sample, 'train/s1'"));
  tar_.clear();
  add("s1.a.jpg", "x");
  add("s1.b.jpg", "y");
  add("s1.json", "{}");
  EXPECT_THAT(refused(), HasSubstr("'s1.a.jpg' and 's1.b.jpg'"));
}

std::string record(const std::string& text) {  // of a pax header
  std::size_t length = text.size() + 4;
  if (std::to_string(length).size() == 1) --length;
  return std::to_string(length) + " " + text + "\n";
}

TEST_F(TarTest, APaxHeaderGivesNameAndSizeOfTheNextMember) {
  add("header", record("comment=a path=no.jpg") + record("path=ant/long.jpg"),
      'x');
  add("short.jpg", "x");
  // As Python's tarfile writes members of 8 GiB and more.
  add("header", record("size=600") + record("mtime=1.5"), 'x');
  add("ant/large.jpg", std::string(600, 'y'), '0', "00000000000");
  add("bee/last.jpg", "z");
  EXPECT_THAT(pictures(), ElementsAre("ant/large.jpg ant", "ant/long.jpg ant",
                                      "bee/last.jpg bee"));
  for (const char* damaged :
       {"8 path=x\n", "xx path=x\n", "99 path=x\n", "11 size=-1\n"}) {
    tar_.clear();
    add("header", damaged, 'x');
    add("a.jpg", "x");
    EXPECT_THAT(refused(), HasSubstr("pax header")) << damaged;
  }
}

TEST_F(TarTest, NamesWithDotsAreRowsWithAWarning) {
  std::vector<std::string> told;
  set_log_writer(
      [&](LogLevel, std::string_view message) { told.emplace_back(message); });
  add("ant/1_jpg.rf.0a1b.jpg", "x");
  add("ant/1_jpg.rf.77c0.jpg", "y");
  add("ant/2_jpg.rf.1234.jpg", "z");
  EXPECT_THAT(pictures(), SizeIs(3));
  set_log_writer({});
  EXPECT_THAT(told, ElementsAre(HasSubstr(
                        "'ant/1_jpg.rf.0a1b.jpg' and 'ant/1_jpg.rf.77c0.jpg' "
                        "become separate rows")));
}

TEST_F(TarTest, ACompressedFileMustBeUnpacked) {
  Json section;
  section["kind"] = "images";
  section["path"] = folder_.write("a.tar.gz", "x");
  try {
    open_source(parse_source_spec(section, "source"), {});
    ADD_FAILURE() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "images.tar");
    EXPECT_THAT(error.what(), HasSubstr("unpack it to a .tar file"));
  }
}

TEST_F(TarTest, AMemberThatIsCutOffIsNamed) {
  add("a.jpg", "x", '0', "00000100000");
  EXPECT_THAT(refused(), HasSubstr("'a.jpg' is cut off"));
}

TEST_F(TarTest, AFileThatEndsWithinWhatFillsABlockOrAHeaderIsCutOff) {
  add("a.jpg", "x");
  const std::string whole = tar_;
  end_.clear();
  tar_.resize(tar_.size() - 100);
  EXPECT_THAT(refused(), HasSubstr("is cut off at byte 924, after member "
                                   "'a.jpg'"));
  tar_ = whole + std::string(300, 'h');
  EXPECT_THAT(refused(), HasSubstr("is cut off at byte 1324"));
}

TEST_F(TarTest, WhatIsTooShortIsNoTarFile) {
  end_.clear();
  for (const char* bytes : {"", "not a tar file"}) {
    tar_ = bytes;
    EXPECT_THAT(refused(), HasSubstr("a.tar: the file is not a tar file"));
  }
}

}  // namespace
}  // namespace penstock::images
