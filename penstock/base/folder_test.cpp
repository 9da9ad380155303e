#include "penstock/base/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "penstock/base/fake/test_folder.h"
#include "penstock/base/fake/test_memory.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// Names that are too long to lie in a string itself.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    files_.write("rows/a file with a long name", "1");
    files_.write("rows/a folder with a long name/below", "2");
    files_.write("elsewhere/kept", "3");
    ::symlink(files_.path("elsewhere").c_str(),
              files_.path("rows/link").c_str());
  }

  /// "NAME" of a file, "NAME/" of a folder, "NAME@" of a link.
  static std::string shown(const FolderEntry& entry) {
    const bool link = entry.type == std::filesystem::file_type::symlink;
    return entry.path.filename().string() + (entry.is_folder() ? "/"
                                             : link            ? "@"
                                                               : "");
  }
  std::vector<std::string> listed(const std::string& name) {
    std::vector<std::string> all;
    for (const FolderEntry& entry : entries_of(files_.path(name), failed_))
      all.push_back(shown(entry));
    return all;
  }
  bool there(const std::string& name) const {
    return std::filesystem::exists(files_.path(name));
  }

  TestFolder files_;
  std::error_code failed_;
};

TEST_F(FolderTest, ListsWhatLiesInAFolderWithItsKind) {
  EXPECT_THAT(listed("rows"),
              UnorderedElementsAre("a file with a long name",
                                   "a folder with a long name/", "link@"));
  EXPECT_FALSE(failed_);
  EXPECT_THAT(listed("elsewhere"), ElementsAre("kept"));
}

TEST_F(FolderTest, SaysWhyAFolderCannotBeRead) {
  EXPECT_THAT(listed("nowhere"), ElementsAre());
  EXPECT_EQ(failed_, std::errc::no_such_file_or_directory);
  EXPECT_THAT(listed("elsewhere/kept"), ElementsAre());
  EXPECT_EQ(failed_, std::errc::not_a_directory);
  EXPECT_THAT(listed("elsewhere"), ElementsAre("kept"));
  EXPECT_FALSE(failed_);
}

TEST_F(FolderTest, VisitsWhatLiesBelowWhereItIsTold) {
  std::vector<std::string> all;
  each_below(files_.path("rows"), failed_, [&](const FolderEntry& entry) {
    all.push_back(shown(entry));
    return entry.is_folder();
  });
  EXPECT_FALSE(failed_);
  EXPECT_THAT(all, UnorderedElementsAre("a file with a long name",
                                        "a folder with a long name/", "below",
                                        "link@"));
  all.clear();
  each_below(files_.path("rows"), failed_, [&](const FolderEntry& entry) {
    all.push_back(shown(entry));
    return shown(entry) == "link@";
  });
  EXPECT_THAT(
      all, UnorderedElementsAre("a file with a long name",
                                "a folder with a long name/", "link@", "kept"));
  each_below(files_.path("rows"), failed_,
             [](const FolderEntry&) { return true; });
  EXPECT_EQ(failed_, std::errc::not_a_directory);
}

TEST_F(FolderTest, RemovesATreeAndOfALinkOnlyTheLink) {
  remove_tree(files_.path("rows"), failed_);
  EXPECT_FALSE(failed_) << failed_.message();
  EXPECT_FALSE(there("rows"));
  EXPECT_TRUE(there("elsewhere/kept"));
  remove_tree(files_.path("elsewhere/kept"));
  EXPECT_FALSE(there("elsewhere/kept"));
}

TEST_F(FolderTest, WhatIsNotThereIsRemoved) {
  remove_tree(files_.path("nowhere"), failed_);
  EXPECT_FALSE(failed_);
}

TEST_F(FolderTest, SaysWhyATreeStays) {
  remove_tree(files_.path("elsewhere/kept/below"), failed_);
  EXPECT_EQ(failed_, std::errc::not_a_directory);
  remove_tree("/proc/self/task", failed_);
  EXPECT_TRUE(failed_);
}

#ifndef PENSTOCK_SANITIZED_THREAD

TEST_F(FolderTest, LacksMemoryWithoutEndingTheProgram) {
  const std::filesystem::path rows = files_.path("rows");
  EXPECT_GT(failures_of([&] { entries_of(rows, failed_); }), 3);
  EXPECT_GT(
      failures_of([&] { each_below(rows, failed_, &FolderEntry::is_folder); }),
      4);
  EXPECT_EQ(failures_of([&] { remove_tree(rows, failed_); }), 0);
  EXPECT_FALSE(failed_);
  EXPECT_FALSE(there("rows"));
}

#endif

}  // namespace
}  // namespace penstock
