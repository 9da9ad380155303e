#include "penstock/inspect/hf_datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "penstock/base/error.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

class HfDatasetsTest : public testing::Test {
 protected:
  HfDatasetsTest() {
    fs::remove_all(root_);
    // A repository of the hub: two snapshots share a blob.
    write("hub/datasets--org--name/blobs/aa", std::string(1000, 'x'));
    write("hub/datasets--org--name/blobs/bb", std::string(500, 'x'));
    write("hub/datasets--org--name/refs/main", "c2\n");
    link("hub/datasets--org--name/snapshots/c1/data/a.jsonl", "aa");
    link("hub/datasets--org--name/snapshots/c2/data/a.jsonl", "aa");
    link("hub/datasets--org--name/snapshots/c2/data/b.jsonl.zst", "bb");
    write("hub/models--org--model/blobs/cc", "not a data set");
    // What load_dataset() makes.
    const std::string set = "datasets/org___name/default/0.0.0/abc/";
    write(set + "name-train-00000-of-00002.arrow", std::string(300, 'x'));
    write(set + "name-train-00001-of-00002.arrow", std::string(300, 'x'));
    write(set + "name-test.arrow", std::string(100, 'x'));
    write(set + "dataset_info.json",
          R"({"splits": {"train": {"num_examples": 40},
                         "test": {"num_examples": 5}}})");
    write("datasets/downloads/zz", std::string(77, 'x'));
  }
  ~HfDatasetsTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void link(const std::string& path, const std::string& blob) {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink("../../../blobs/" + blob, root_ / path);
  }
  DatasetSearch search() { return {.folders = folders(), .measure = false}; }
  HfFolders folders() {
    return {.hub = root_ / "hub", .datasets = root_ / "datasets"};
  }
  Json::Array found(DatasetSearch search) {
    return find_datasets(search).find("datasets")->array();
  }
  static std::string text(const Json& set, const char* key) {
    return set.find(key)->dump();
  }

  const fs::path root_ = fs::path(testing::TempDir()) /
                         ("hf_datasets_test_" + std::to_string(::getpid()));
};

TEST_F(HfDatasetsTest, FindsRepositoriesAndWhatWasMadeOfThem) {
  const Json::Array sets = found(search());
  ASSERT_THAT(sets, SizeIs(2));
  EXPECT_EQ(text(sets[0], "name"), "\"org/name\"");
  EXPECT_EQ(text(sets[0], "origin"), "\"hub\"");
  EXPECT_EQ(sets[0].find("bytes")->integer(), 1000 + 500 + 3)
      << "each blob once, and the ref";
  EXPECT_EQ(text(sets[0], "formats"), "[\"jsonl\"]");
  EXPECT_EQ(text(sets[0], "complete"), "true");
  EXPECT_EQ(text(sets[1], "name"), "\"org/name\"");
  EXPECT_EQ(text(sets[1], "config"), "\"default\"");
  EXPECT_EQ(text(sets[1], "rows"), "45");
  EXPECT_EQ(text(sets[1], "splits"), "[\"train\", \"test\"]");
  EXPECT_EQ(text(sets[1], "formats"), "[\"arrow\"]");
}

TEST_F(HfDatasetsTest, SaysWhatIsIncomplete) {
  write("hub/datasets--org--name/blobs/dd.incomplete", "");
  link("hub/datasets--org--gone/snapshots/c1/a.parquet", "none");
  write("datasets/org___name/default/0.0.0/abd.incomplete/x-train.arrow", "x");
  const Json::Array sets = found(search());
  ASSERT_THAT(sets, SizeIs(4));
  EXPECT_THAT(text(sets[0], "why"), HasSubstr("a.parquet"));
  EXPECT_THAT(text(sets[1], "why"), HasSubstr("dd.incomplete"));
  EXPECT_EQ(text(sets[2], "complete"), "true");
  EXPECT_THAT(text(sets[3], "why"), HasSubstr("interrupted"));
}

TEST_F(HfDatasetsTest, FindsFoldersAndTheJobsThatReadThem) {
  write("more/deep/tokens/state.json", "{}");
  write("more/deep/tokens/data-00000-of-00001.arrow", std::string(64, 'x'));
  write("job.json", R"({"source": {"kind": "hf", "path": ")" +
                        (root_ / "more/deep/tokens").string() + R"("}})");
  DatasetSearch of = search();
  of.more = {root_ / "more"};
  of.jobs = {root_ / "job.json"};
  const Json::Array sets = found(of);
  ASSERT_THAT(sets, SizeIs(3));
  EXPECT_EQ(text(sets[2], "origin"), "\"folder\"");
  EXPECT_THAT(text(sets[2], "why"), HasSubstr("dataset_info.json"));
  EXPECT_THAT(text(sets[2], "jobs"), HasSubstr("job.json"));
  EXPECT_EQ(text(sets[0], "jobs"), "[]");
  of.more = {root_ / "gone"};
  EXPECT_THROW(find_datasets(of), Error);
}

TEST_F(HfDatasetsTest, RemovesWhatWasNotUsedForSoLong) {
  const Json kept =
      prune_datasets(folders(), "hub", std::chrono::days(30), false);
  EXPECT_THAT(kept.find("removed")->array(), SizeIs(0));
  EXPECT_EQ(kept.find("kept")->integer(), 1);
  const Json dry =
      prune_datasets(folders(), "hub", std::chrono::seconds(-10), true);
  EXPECT_THAT(dry.find("removed")->array(), SizeIs(1));
  EXPECT_TRUE(fs::exists(root_ / "hub/datasets--org--name"));
  const Json gone =
      prune_datasets(folders(), "hub", std::chrono::seconds(-10), false);
  EXPECT_EQ(gone.find("bytes")->integer(), 1503);
  EXPECT_FALSE(fs::exists(root_ / "hub/datasets--org--name"));
  EXPECT_TRUE(fs::exists(root_ / "hub/models--org--model/blobs/cc"));
  EXPECT_TRUE(fs::exists(root_ / "datasets/org___name"));
  prune_datasets(folders(), "datasets", std::chrono::seconds(-10), false);
  EXPECT_FALSE(fs::exists(root_ / "datasets/org___name/default/0.0.0/abc"));
  EXPECT_TRUE(fs::exists(root_ / "datasets/downloads/zz"));
}

}  // namespace
}  // namespace penstock
