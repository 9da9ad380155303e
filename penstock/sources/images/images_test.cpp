#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "penstock/base/log.h"
#include "penstock/base/settings.h"
#include "penstock/sources/files/test_folder.h"

namespace penstock::images {
namespace {

namespace fs = std::filesystem;
using files::TestFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImagesTest : public testing::Test {
 protected:
  std::unique_ptr<Source> open(const std::string& path,
                               std::vector<std::string> columns = {
                                   "path", "class", "image"}) {
    Json section;
    section["kind"] = "images";
    section["path"] = path;
    if (!labels_.empty()) section["labels"] = labels_;
    if (!classes_.empty()) section["classes"] = settings::list_of(classes_);
    std::vector<ColumnRequest> requests;
    for (std::string& column : columns)
      requests.push_back({.column = std::move(column),
                          .as = ReadAs::value,
                          .setting = "fields.x",
                          .coded = true});
    return open_source(parse_source_spec(section, "source"), requests,
                       {.fitted = fitted_});
  }
  /// "path class bytes" of each row.
  std::vector<std::string> rows(Source& source) {
    std::vector<std::string> all;
    auto reader = open_checked_reader(source);
    for (const Partition& part : source.partitions(1))
      reader->scan(part, {.rows = 3}, [&](KeyList& keys, Block& block) {
        for (std::int64_t row = 0; row < block.rows; ++row) {
          EXPECT_EQ(keys.integer(row), std::ssize(all));
          all.push_back(shown(block, row));
        }
        return true;
      });
    return all;
  }
  static std::string shown(const Block& block, std::int64_t row) {
    std::string text;
    for (const Column& column : block.columns)
      text += (text.empty() ? "" : " ") +
              (column.valid(row) ? std::string(column.text(row)) : "NULL");
    return text;
  }
  std::string refused(const std::string& path, const std::string& code) {
    try {
      open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, code);
      return error.what();
    }
    ADD_FAILURE() << "it was opened";
    return {};
  }

  TestFolder folder_;
  std::string labels_;
  std::vector<std::string> classes_;
  bool fitted_ = false;
};

TEST_F(ImagesTest, AFolderOfFoldersIsReadAsTorchvisionDoes) {
  folder_.write("dog/b.JPG", "2");
  folder_.write("dog/deep/er/a.png", "3");
  folder_.write("cat/.hidden.jpeg", "1");
  folder_.write("cat/notes.txt", "no picture");
  folder_.write("cat/old.PPM", "5");
  folder_.write("loose.jpg", "of no class");
  folder_.write("elsewhere/linked/c.webp", "4");
  fs::create_directory_symlink(folder_.path("elsewhere/linked"),
                               folder_.path("ant"));
  fs::create_symlink(folder_.path("dog/b.JPG"), folder_.path("cat/b.jpg"));
  auto source = open(folder_.path(""));
  EXPECT_THAT(rows(*source),
              ElementsAre("ant/c.webp ant 4", "cat/.hidden.jpeg cat 1",
                          "cat/b.jpg cat 2", "cat/old.PPM cat 5",
                          "dog/b.JPG dog 2", "dog/deep/er/a.png dog 3",
                          "elsewhere/linked/c.webp elsewhere 4"));
  EXPECT_THAT(source->schema().find("class")->values,
              ElementsAre("ant", "cat", "dog", "elsewhere"));
  EXPECT_EQ(source->facts().parts->name(1), "cat/.hidden.jpeg");
  EXPECT_EQ(source->facts().parts->end(1), 2);
  EXPECT_EQ(source->place_of(1), "cat/.hidden.jpeg");
}

TEST_F(ImagesTest, BesideAnotherSourceRowsAreNumberedOverAll) {
  folder_.write("cat/a.jpg", "1");
  folder_.write("cat/b.wav", "2");
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(open(folder_.path(""), {"path"}));
  EXPECT_EQ(sources[0]->facts().key, ColumnType::text) << "paths";
  sources.push_back(open_source(
      parse_source_spec(files::section_of("audio", folder_.path("")), "source"),
      {{.column = "path",
        .as = ReadAs::value,
        .setting = "fields.x",
        .coded = true}}));
  auto all = concatenated(std::move(sources));
  EXPECT_EQ(all->facts().key, ColumnType::int64);
}

TEST_F(ImagesTest, AFolderThatLinksToItselfIsSearchedOnce) {
  folder_.write("cat/a.jpg", "1");
  fs::create_directory_symlink(folder_.path("cat"), folder_.path("cat/again"));
  EXPECT_THAT(rows(*open(folder_.path(""))), ElementsAre("cat/a.jpg cat 1"));
}

TEST_F(ImagesTest, AFileThatIsNoPictureForItsSizeIsAProblemOfItsRow) {
  folder_.write("ant/a.jpg", "1");
  fs::resize_file(folder_.path("ant/a.jpg"), (std::uintmax_t{1} << 30) + 1);
  auto source = open(folder_.path(""), {"image"});
  auto reader = open_checked_reader(*source);
  std::string why;
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {.rows = 3}, [&](KeyList&, Block& rows) {
      for (const auto& problem : rows.problems) why = problem.why;
      return true;
    });
  EXPECT_THAT(why, HasSubstr("1073741825 bytes"));
}

TEST_F(ImagesTest, LabelsOfTarFilesAreRefused) {
  folder_.write("a.tar", std::string(1024, '\0'));
  folder_.write("labels.csv", "path,class\na.jpg,ant\n");
  labels_ = folder_.path("labels.csv");
  EXPECT_THAT(refused(folder_.path("a.tar"), "images.labels"),
              HasSubstr("the pictures are members of tar files"));
}

TEST_F(ImagesTest, RowsAreReadInAnyOrderByManyReaders) {
  for (int i = 0; i < 40; ++i)
    folder_.write(
        "c" + std::to_string(i % 7) + "/" + std::to_string(i) + ".jpg",
        std::string(static_cast<std::size_t>(i), 'x'));
  auto source = open(folder_.path(""));
  const std::vector<std::string> expected = rows(*source);
  for (std::size_t readers : {1U, 2U, 8U}) {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < readers; ++r)
      threads.emplace_back([&] {
        auto reader = open_checked_reader(*source);
        const std::vector<std::int64_t> positions = {39, 0, 7, 7, 12};
        Block block;
        for (int time = 0; time < 20; ++time) {
          reader->read(ReadRequest(positions), block);
          for (std::size_t at = 0; at < positions.size(); ++at)
            EXPECT_EQ(shown(block, static_cast<std::int64_t>(at)),
                      expected[static_cast<std::size_t>(positions[at])]);
        }
      });
  }
}

std::string error_of_read(Source& source, std::int64_t position) {
  Block block;
  const std::vector<std::int64_t> one = {position};
  try {
    open_checked_reader(source)->read(ReadRequest(one), block);
  } catch (const Error& error) {
    return error.parts().code + ": " + error.what();
  }
  return "no error";
}

TEST_F(ImagesTest, APictureThatVanishesEndsTheRun) {
  folder_.write("cat/a.jpg", "1");
  auto source = open(folder_.path(""));
  fs::remove(folder_.path("cat/a.jpg"));
  EXPECT_THAT(error_of_read(*source, 0),
              AllOf(HasSubstr("files.changed"), HasSubstr("cat/a.jpg"),
                    HasSubstr("no longer exists")));
}

TEST_F(ImagesTest, APictureThatIsRewrittenOrReplacedEndsTheRun) {
  folder_.write("cat/a.jpg", "1");
  folder_.write("cat/b.jpg", "2");
  folder_.write("other", "3");
  auto source = open(folder_.path(""));
  EXPECT_EQ(error_of_read(*source, 0), "no error");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  folder_.write("cat/a.jpg", "9");
  fs::rename(folder_.path("other"), folder_.path("cat/b.jpg"));
  for (const std::int64_t position : {0, 1})
    EXPECT_THAT(error_of_read(*source, position), HasSubstr("files.changed"));
}

TEST_F(ImagesTest, ALinkThatPointsNowhereIsAProblemOfItsRow) {
  folder_.write("cat/b.jpg", "2");
  fs::create_symlink("nowhere", folder_.path("cat/a.jpg"));
  auto source = open(folder_.path(""));
  auto reader = open_checked_reader(*source);
  const std::vector<std::int64_t> both = {0, 1};
  Block block;
  reader->read(ReadRequest(both), block);
  ASSERT_EQ(block.problems.size(), 1U);
  EXPECT_EQ(block.problems[0].row, 0);
  EXPECT_THAT(block.problems[0].why, HasSubstr("cat/a.jpg"));
  EXPECT_EQ(shown(block, 1), "cat/b.jpg cat 2");
}

TEST_F(ImagesTest, AnotherVersionOfAPictureIsAnotherCopyOfTheSameNames) {
  folder_.write("cat/a.jpg", "1");
  auto before = open(folder_.path(""));
  EXPECT_EQ(open(folder_.path(""))->version_of_copy(),
            before->version_of_copy());
  folder_.write("cat/a.jpg", "22");
  auto after = open(folder_.path(""));
  EXPECT_EQ(after->identity(), before->identity());
  EXPECT_NE(after->version_of_copy(), before->version_of_copy());
  folder_.write("cat/b.jpg", "1");
  EXPECT_NE(open(folder_.path(""))->identity(), before->identity());
}

TEST_F(ImagesTest, AreInTheOrderOfTheirPathsWhateverTheirClassesAreCalled) {
  for (const char* name :
       {"a/1.jpg", "a-b/1.jpg", "a.b/c/1.jpg", "a.b/c.jpg", "a/10.jpg",
        "a/2.jpg", "ab/picture_000000001.jpg", "ab/picture_00000000.jpg"})
    folder_.write(name, "x");
  EXPECT_THAT(rows(*open(folder_.path(""), {"path"})),
              ElementsAre("a-b/1.jpg", "a.b/c.jpg", "a.b/c/1.jpg", "a/1.jpg",
                          "a/10.jpg", "a/2.jpg", "ab/picture_00000000.jpg",
                          "ab/picture_000000001.jpg"));
  EXPECT_THAT(rows(*open(folder_.path(""), {"class"})),
              ElementsAre("a-b", "a.b", "a.b", "a", "a", "a", "ab", "ab"));
}

TEST_F(ImagesTest, FoldersThatHoldNoClasses) {
  EXPECT_THAT(refused(folder_.path("none"), "files.missing"),
              HasSubstr("none"));
  EXPECT_THAT(refused(folder_.path(""), "images.none"),
              HasSubstr("neither the folder nor one in it has a picture"));
  folder_.write("a.jpg", "1");
  EXPECT_THAT(
      refused(folder_.path(""), "images.none"),
      AllOf(HasSubstr("1 picture, but no class folders"), HasSubstr("labels")));
  fs::create_directory(folder_.path("dog"));
  EXPECT_THAT(refused(folder_.path(""), "images.none"),
              HasSubstr("1 picture, but its folder 'dog' has none"));
  fs::remove(folder_.path("dog"));
  folder_.write("cat/a.jpg", "1");
  folder_.write("empty/notes.txt", "");
  EXPECT_THAT(refused(folder_.path(""), "images.empty_class"),
              HasSubstr("/empty"));
}

TEST_F(ImagesTest, AFolderMayBeEmptyWhereItsClassIsLearnedFromOthers) {
  folder_.write("cat/a.jpg", "1");
  fs::create_directory(folder_.path("dog"));
  fitted_ = true;
  EXPECT_THAT(rows(*open(folder_.path(""))), ElementsAre("cat/a.jpg cat 1"));
}

TEST_F(ImagesTest, LabelsMayBeQuotedAndNamedTwoWays) {
  folder_.write("a,b.jpg", "1");
  labels_ = folder_.write(
      "l.csv", "id,file_name,label\n1,\"a,b.jpg\",\"big \"\"cat\"\"\"\n");
  EXPECT_THAT(rows(*open(folder_.path(""))),
              ElementsAre("a,b.jpg big \"cat\" 1"));
  labels_ = folder_.write("l.jsonl", R"({"path": "a,b.jpg", "class": 7})"
                                     "\n");
  EXPECT_THAT(rows(*open(folder_.path(""))), ElementsAre("a,b.jpg 7 1"));
  labels_ = folder_.write("l.csv", "path,class\n\"a,b.jpg,cat\n");
  EXPECT_THAT(refused(folder_.path(""), "images.labels"), HasSubstr("line 2"));
  labels_ =
      folder_.write("l.csv", "path,class\n\"a,b.jpg\",x\n\"a,b.jpg\",y\n");
  EXPECT_THAT(refused(folder_.path(""), "images.twice"), HasSubstr("a,b.jpg"));
}

TEST_F(ImagesTest, ClassesThatAreWholeNumbersAreInTheOrderOfNumbers) {
  std::string labels = "path,class\n";
  for (const char* number : {"10", "2", "0", "-1", "11"}) {
    const std::string name = std::string("p") + number + ".jpg";
    folder_.write(name, "x");
    labels += name + "," + number + "\n";
  }
  labels_ = folder_.write("l.csv", labels);
  auto source = open(folder_.path(""));
  EXPECT_EQ(source->schema().find("class")->declared, "int64");
  EXPECT_THAT(source->schema().find("class")->values,
              ElementsAre("-1", "0", "2", "10", "11"));
  EXPECT_EQ(rows(*source)[2], "p10.jpg 10 x");
  Json section = files::section_of("images", folder_.path(""));
  section["labels"] = labels_;
  for (ReadAs as : {ReadAs::integer, ReadAs::number, ReadAs::value})
    EXPECT_THAT(files::shown_rows(section, {"class"}, as),
                ElementsAre("-1.0", "0.0", "10.0", "11.0", "2.0"));
  section["labels"] =
      folder_.write("l.csv", "path,class\np2.jpg,2\np10.jpg,010\n");
  EXPECT_THAT(files::shown_rows(section, {"class"}), ElementsAre("010", "2"));
}

TEST_F(ImagesTest, FoldersThatAreNumbersAreSortedAsTorchvisionDoes) {
  for (const char* name : {"10/a.jpg", "2/a.jpg"}) folder_.write(name, "x");
  auto source = open(folder_.path(""));
  EXPECT_EQ(source->schema().find("class")->declared, "text");
  EXPECT_THAT(source->schema().find("class")->values, ElementsAre("10", "2"));
}

TEST_F(ImagesTest, LabelsMayHaveAMarkOfUtf8OrTabs) {
  folder_.write("a.jpg", "1");
  labels_ = folder_.write("l.csv", "\xEF\xBB\xBFpath,class\r\na.jpg,ant\r\n");
  EXPECT_THAT(rows(*open(folder_.path(""))), ElementsAre("a.jpg ant 1"));
  labels_ = folder_.write("l.tsv", "path\tclass\na.jpg\tant, red\n");
  EXPECT_THAT(rows(*open(folder_.path(""))), ElementsAre("a.jpg ant, red 1"));
}

TEST_F(ImagesTest, ATableOfAnotherKindOrWithOtherColumnsIsNoLabels) {
  labels_ = folder_.write("l.parquet", "PAR1");
  EXPECT_THAT(refused(folder_.path(""), "images.labels"),
              HasSubstr(R"({"image": {"column": "path", "folder": ...}})"));
  labels_ = folder_.write("l.csv", "filename,kind\n");
  EXPECT_THAT(refused(folder_.path(""), "images.labels"),
              HasSubstr("its first line is text 'filename,kind'"));
}

TEST_F(ImagesTest, AClassThatIsNotDeclaredIsNamedWithItsLine) {
  folder_.write("a.jpg", "1");
  folder_.write("b.jpg", "2");
  labels_ = folder_.write("l.csv", "path,class\na.jpg,cat\nb.jpg,catt\n");
  classes_ = {"dog", "cat"};
  EXPECT_THAT(refused(folder_.path(""), "images.unknown_class"),
              AllOf(HasSubstr("l.csv, line 3"),
                    HasSubstr("found the class text 'catt'"),
                    HasSubstr("expected 'dog', 'cat'"),
                    HasSubstr("did you mean 'cat'?")));
  labels_ = folder_.write("l.csv", "path,class\na.jpg,cat\nb.jpg,cat\n");
  EXPECT_THAT(open(folder_.path(""))->schema().find("class")->values,
              ElementsAre("dog", "cat"));
}

TEST_F(ImagesTest, FoldersMayDeclareMoreClassesThanTheyHave) {
  folder_.write("cat/a.jpg", "1");
  folder_.write("ant/a.jpg", "2");
  auto sorted = open(folder_.path(""));
  classes_ = {"dog", "cat", "ant"};
  auto source = open(folder_.path(""));
  EXPECT_THAT(source->schema().find("class")->values,
              ElementsAre("dog", "cat", "ant"));
  EXPECT_THAT(rows(*source), ElementsAre("ant/a.jpg ant 2", "cat/a.jpg cat 1"));
  EXPECT_NE(source->identity(), sorted->identity());
  classes_ = {"dog", "cat"};
  EXPECT_THAT(refused(folder_.path(""), "images.unknown_class"),
              HasSubstr("/ant"));
}

TEST_F(ImagesTest, AFolderMayBeEmptyWhereItsClassIsDeclared) {
  folder_.write("cat/a.jpg", "1");
  fs::create_directory(folder_.path("dog"));
  classes_ = {"dog", "cat"};
  auto source = open(folder_.path(""));
  EXPECT_THAT(rows(*source), ElementsAre("cat/a.jpg cat 1"));
  EXPECT_THAT(source->schema().find("class")->values,
              ElementsAre("dog", "cat"));
  fs::create_directory(folder_.path("bee"));
  EXPECT_THAT(refused(folder_.path(""), "images.empty_class"),
              HasSubstr("/bee"));
  fs::remove(folder_.path("bee"));
  classes_.clear();
  EXPECT_THAT(refused(folder_.path(""), "images.empty_class"),
              AllOf(HasSubstr("/dog"), HasSubstr("list its class in")));
}

TEST_F(ImagesTest, FoldersThatAreAllEmptyHoldNoPicture) {
  fs::create_directory(folder_.path("dog"));
  classes_ = {"dog"};
  EXPECT_THAT(refused(folder_.path(""), "images.none"),
              HasSubstr("neither the folder nor one in it has a picture"));
}

TEST_F(ImagesTest, PicturesWithoutAClassCanBeRead) {
  folder_.write("b.jpg", "2");
  folder_.write("a.PNG", "1");
  folder_.write("notes/today.txt", "");
  const auto source = open(folder_.path(""), {"path", "image"});
  EXPECT_THAT(rows(*source), ElementsAre("a.PNG 1", "b.jpg 2"));
  EXPECT_EQ(source->schema().find("class"), nullptr);
  classes_ = {"cat", "dog"};
  EXPECT_THAT(rows(*open(folder_.path(""), {"path"})),
              ElementsAre("a.PNG", "b.jpg"));
  classes_.clear();
  labels_ = folder_.write("l.csv", "path\nb.jpg\n");
  EXPECT_THAT(rows(*open(folder_.path(""), {"path"})), ElementsAre("b.jpg"));
  EXPECT_THAT(refused(folder_.path(""), "images.none"),
              HasSubstr("l.csv: the file gives no picture a class"));
  labels_ = folder_.write("l.jsonl", R"({"path": "b.jpg", "class": null})");
  EXPECT_THAT(rows(*open(folder_.path(""), {"path"})), ElementsAre("b.jpg"));
}

TEST_F(ImagesTest, ALabelThatIsMissingIsNullWithAWarning) {
  folder_.write("a.jpg", "1");
  folder_.write("b.jpg", "2");
  labels_ = folder_.write("l.csv", "path,class\na.jpg,\nb.jpg,cat\n");
  std::vector<std::string> told;
  set_log_writer(
      [&](LogLevel, std::string_view message) { told.emplace_back(message); });
  EXPECT_THAT(rows(*open(folder_.path(""))),
              ElementsAre("a.jpg NULL 1", "b.jpg cat 2"));
  EXPECT_THAT(rows(*open(folder_.path(""), {"path"})),
              ElementsAre("a.jpg", "b.jpg"));
  set_log_writer({});
  EXPECT_THAT(told,
              ElementsAre(HasSubstr("l.csv: 1 of 2 pictures have no class, "
                                    "'a.jpg' the first")));
}

TEST_F(ImagesTest, PicturesBesideClassFoldersAreLeftOutWithAWarning) {
  folder_.write("cat/a.jpg", "1");
  folder_.write("b.jpg", "2");
  std::vector<std::string> told;
  set_log_writer(
      [&](LogLevel, std::string_view message) { told.emplace_back(message); });
  EXPECT_THAT(rows(*open(folder_.path(""), {"path"})),
              ElementsAre("cat/a.jpg"));
  set_log_writer({});
  EXPECT_THAT(told, ElementsAre(HasSubstr(": 1 picture is not read: only")));
}

TEST_F(ImagesTest, APipeInAClassFolderIsAProblemOfItsRow) {
  folder_.write("ant/a.jpg", "1");
  ASSERT_EQ(::mkfifo(folder_.path("ant/b.jpg").c_str(), 0600), 0);
  auto source = open(folder_.path(""), {"image"});
  auto reader = open_checked_reader(*source);
  std::vector<std::string> why;
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {.rows = 3}, [&](KeyList&, Block& rows) {
      for (const auto& problem : rows.problems) why.push_back(problem.why);
      return true;
    });
  EXPECT_THAT(why, ElementsAre(AllOf(HasSubstr("/ant/b.jpg'"),
                                     HasSubstr("it is a pipe, a socket or a "
                                               "device, not a regular file"))));
}

TEST_F(ImagesTest, APipeAsLabelsIsRefused) {
  folder_.write("a.jpg", "1");
  labels_ = folder_.path("labels.csv");
  ASSERT_EQ(::mkfifo(labels_.c_str(), 0600), 0);
  EXPECT_THAT(refused(folder_.path(""), "images.labels"),
              HasSubstr("it is a pipe"));
}

}  // namespace
}  // namespace penstock::images
