// The list of the pictures in class folders, kept between starts.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "penstock/base/log.h"
#include "penstock/sources/files/test_folder.h"

namespace penstock::images {
namespace {

namespace fs = std::filesystem;
using files::TestFolder;
using testing::ElementsAre;

class ListingTest : public testing::Test {
 protected:
  ListingTest() {
    before_ = std::getenv("XDG_CACHE_HOME") == nullptr
                  ? std::string()
                  : std::getenv("XDG_CACHE_HOME");
    ::setenv("XDG_CACHE_HOME", cache_.path("").c_str(), 1);
    folder_.write("ant/1.jpg", "one");
    folder_.write("ant/deep/2.jpg", "two");
    folder_.write("bee/3.jpg", "three");
    settle(9);
  }
  ~ListingTest() override {
    if (before_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  /// As if the last change was so many minutes ago.
  void settle(int minutes) {
    const auto then =
        fs::file_time_type::clock::now() - std::chrono::minutes(minutes);
    for (const char* name : {"", "ant", "ant/deep", "bee"})
      fs::last_write_time(folder_.path(name), then);
  }
  std::unique_ptr<Source> open(const std::string& listing = "kept") {
    Json section;
    section["kind"] = "images";
    section["path"] = folder_.path("");
    section["listing"] = listing;
    return open_source(
        parse_source_spec(section, "source"),
        {{.column = "path", .as = ReadAs::value, .setting = "fields.x"},
         {.column = "image", .as = ReadAs::value, .setting = "fields.x"}});
  }
  /// "path bytes" of each row.
  std::vector<std::string> rows(Source& source) {
    std::vector<std::string> all;
    auto reader = open_checked_reader(source);
    for (const Partition& part : source.partitions(1))
      reader->scan(part, {.rows = 8}, [&](KeyList&, Block& block) {
        for (std::int64_t row = 0; row < block.rows; ++row)
          all.push_back(std::string(block.columns[0].text(row)) + " " +
                        std::string(block.columns[1].text(row)));
        return true;
      });
    return all;
  }
  std::vector<std::string> kept_files() {
    std::vector<std::string> all;
    if (fs::exists(cache_.path("penstock/listings")))
      for (const auto& entry :
           fs::directory_iterator(cache_.path("penstock/listings")))
        all.push_back(entry.path().string());
    return all;
  }

  TestFolder folder_, cache_;
  std::string before_;
};

TEST_F(ListingTest, TheNextStartFindsTheSamePictures) {
  auto first = open();
  const std::vector<std::string> expected = rows(*first);
  EXPECT_THAT(expected, ElementsAre("ant/1.jpg one", "ant/deep/2.jpg two",
                                    "bee/3.jpg three"));
  ASSERT_EQ(kept_files().size(), 1U);
  // That it is read shows in what cannot be seen any more.
  fs::permissions(folder_.path("ant/deep"), fs::perms::owner_exec);
  auto second = open();
  fs::permissions(folder_.path("ant/deep"), fs::perms::owner_all);
  EXPECT_EQ(rows(*second), expected);
  EXPECT_EQ(second->identity(), first->identity());
  EXPECT_EQ(second->schema().find("class")->values,
            first->schema().find("class")->values);
}

TEST_F(ListingTest, TheNextStartTellsOfPicturesOutsideClassFolders) {
  folder_.write("loose.jpg", "loose");
  settle(9);
  int told = 0;
  set_log_writer([&](LogLevel, std::string_view message) {
    told += message.find("1 picture is not read") != message.npos ? 1 : 0;
  });
  for (int start = 0; start < 2; ++start) EXPECT_EQ(rows(*open()).size(), 3U);
  set_log_writer({});
  EXPECT_EQ(kept_files().size(), 1U);
  EXPECT_EQ(told, 2);
}

TEST_F(ListingTest, FilesThatComeOrGoAreSeen) {
  open();
  folder_.write("ant/deep/new.jpg", "new");
  EXPECT_EQ(rows(*open()).size(), 4U);
  settle(8);
  open();
  fs::remove(folder_.path("bee/3.jpg"));
  folder_.write("bee/4.jpg", "four");
  EXPECT_THAT(rows(*open()), testing::Contains("bee/4.jpg four"));
}

TEST_F(ListingTest, AFolderThatChangedAMomentAgoIsNotTrusted) {
  folder_.write("ant/new.jpg", "new");
  open();
  EXPECT_TRUE(kept_files().empty());
}

TEST_F(ListingTest, APictureThatWasRewrittenInPlaceIsReadAsItIs) {
  const std::string before = open()->version_of_copy();
  folder_.write("bee/3.jpg", "another");
  auto source = open();
  EXPECT_THAT(rows(*source), testing::Contains("bee/3.jpg another"));
  EXPECT_NE(source->version_of_copy(), before);
}

TEST_F(ListingTest, ADamagedOneIsMadeAnew) {
  const std::vector<std::string> expected = rows(*open());
  const std::string path = kept_files().at(0);
  const std::string whole = TestFolder::read(path);
  for (std::size_t at = 0; at < whole.size(); at += 41) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    std::ofstream(path, std::ios::binary) << damaged.substr(0, at + 1);
    EXPECT_EQ(rows(*open()), expected);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(rows(*open()), expected);
  }
}

TEST_F(ListingTest, FewPicturesAreListedEachTime) {
  open("auto");
  EXPECT_TRUE(kept_files().empty());
  open("none");
  EXPECT_TRUE(kept_files().empty());
}

}  // namespace
}  // namespace penstock::images
