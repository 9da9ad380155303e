#include "penstock/session/staging.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "penstock/base/fake/test_folder.h"
#include "penstock/base/hash.h"
#include "penstock/monitor/monitor.h"
#include "penstock/session/copied_file.h"
#include "penstock/session/copied_list.h"
#include "penstock/session/machine_profile.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class StagingTest : public testing::Test {
 protected:
  StagingTest() {
    folder_.write("d/a.bin", std::string(std::size_t{9} << 20, 'a'));
    folder_.write("d/sub/b.bin", "b");
    folder_.write("d/empty.bin", "");
  }

  SourceSpec spec() const {
    Json section;
    section["kind"] = "token_store";
    section["path"] = folder_.path("d");
    section["stage"] = folder_.path("copies");
    return parse_source_spec(section, "source");
  }
  SourceSpec copy(StopFlag stop = {}) {
    said_.clear();
    return staged(
        spec(), [this](const std::string& line) { said_.push_back(line); },
        stop, WhatIsInMemory::is_copied);
  }
  std::string refusal() {
    try {
      copy();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  }
  fs::path copied(const std::string& name) const {
    return fs::path(folder_.path("copies")) / staged_name(spec()) / "0" / name;
  }
  std::string text(const std::string& name) const {
    return TestFolder::read(copied(name).string());
  }
  static fs::path part_of(const StagedFile& file, const fs::path& to) {
    return to.string() + ".part-" + std::to_string(hash64(file.version));
  }

  TestFolder folder_;
  std::vector<std::string> said_;
};

TEST_F(StagingTest, FilesAreCopiedOnceAndAreTheSame) {
  const SourceSpec done = copy();
  EXPECT_EQ(done.staged_in, copied("").parent_path().parent_path());
  EXPECT_EQ(text("a.bin"), std::string(std::size_t{9} << 20, 'a'));
  EXPECT_EQ(text("sub/b.bin"), "b");
  EXPECT_EQ(text("empty.bin"), "");
  EXPECT_EQ(fs::last_write_time(copied("a.bin")),
            fs::last_write_time(folder_.path("d/a.bin")));
  EXPECT_THAT(said_, Contains(AllOf(HasSubstr("3 of 3 files, 9.0 MiB"),
                                    HasSubstr("are free"))));
  EXPECT_THAT(said_, Contains(HasSubstr("copied 3 files")));
  copy();
  EXPECT_TRUE(said_.empty());
}

TEST_F(StagingTest, AFileThatChangedIsCopiedAgainAndOneThatIsGoneRemoved) {
  copy();
  folder_.write("d/sub/b.bin", "changed");
  fs::remove(folder_.path("d/empty.bin"));
  folder_.write("d/c.bin", "c");
  copy();
  EXPECT_THAT(said_, Contains(HasSubstr("2 of 3 files")));
  EXPECT_EQ(text("sub/b.bin"), "changed");
  EXPECT_EQ(text("c.bin"), "c");
  EXPECT_FALSE(fs::exists(copied("empty.bin")));
}

TEST_F(StagingTest, ACopyThatSomebodyChangedIsMadeAgain) {
  copy();
  folder_.write(fs::relative(copied("sub/b.bin"), folder_.path("")).string(),
                "x");
  copy();
  EXPECT_EQ(text("sub/b.bin"), "b");
}

TEST_F(StagingTest, AStoppedCopyGoesOnWhereItEnded) {
  const StagedFile file = staged_file(folder_.path("d/a.bin"), "0/a.bin");
  const fs::path to = folder_.path("to/a.bin");
  struct Stopped {};
  EXPECT_THROW(copy_file(file, to, true,
                         [](std::int64_t bytes) {
                           if (bytes > 0) throw Stopped();
                         }),
               Stopped);
  EXPECT_EQ(fs::file_size(part_of(file, to)), std::size_t{4} << 20);
  std::vector<std::int64_t> seen;
  copy_file(file, to, true, [&](std::int64_t bytes) { seen.push_back(bytes); });
  EXPECT_EQ(seen, (std::vector<std::int64_t>{4 << 20, 4 << 20, 1 << 20}));
  EXPECT_EQ(TestFolder::read(to.string()), TestFolder::read(file.from));
  EXPECT_FALSE(fs::exists(part_of(file, to)));
}

// As a power loss leaves it: as long as it was, with zeros in it.
TEST_F(StagingTest, WhatAStoppedCopyHasWrongIsCopiedAgain) {
  const std::size_t piece = std::size_t{4} << 20;
  const StagedFile file = staged_file(folder_.path("d/a.bin"), "0/a.bin");
  const fs::path to = folder_.path("to/a.bin");
  for (const std::size_t wrong : {std::size_t{0}, piece + 5}) {
    std::string left(2 * piece + 10, 'a');
    left[wrong] = '\0';
    fs::create_directories(to.parent_path());
    std::ofstream(part_of(file, to), std::ios::binary) << left;
    const std::uint64_t hash = copy_file(file, to, false, [](std::int64_t) {});
    EXPECT_TRUE(TestFolder::read(to.string()) == TestFolder::read(file.from))
        << "wrong at " << wrong;
    EXPECT_EQ(hash, copy_file(file, folder_.path("to/new.bin"), false,
                              [](std::int64_t) {}));
  }
}

TEST_F(StagingTest, AFileThatIsWrittenMeanwhileIsAnError) {
  StagedFile file = staged_file(folder_.path("d/a.bin"), "0/a.bin");
  try {
    copy_file(file, folder_.path("to/a.bin"), true, [&](std::int64_t bytes) {
      if (bytes > 0) folder_.write("d/a.bin", "short");
    });
    ADD_FAILURE() << "it was copied";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "files.changed");
  }
  EXPECT_FALSE(fs::exists(folder_.path("to/a.bin")));
}

TEST_F(StagingTest, AFullFolderSaysSoAndKeepsWhatWasCopied) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = std::size_t{5} << 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string why = refusal();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(why, AllOf(HasSubstr("File too large"),
                         HasSubstr("already copied are kept")));
  copy();
  EXPECT_EQ(text("a.bin").size(), std::size_t{9} << 20);
}

TEST_F(StagingTest, ItEndsWhenItIsStopped) {
  const std::atomic<bool> stop{true};
  EXPECT_THROW(copy(&stop), Error);
  copy();
  EXPECT_EQ(text("sub/b.bin"), "b");
}

TEST_F(StagingTest, ThoseWhoAskAtOnceShareOneCopy) {
  std::vector<std::thread> ranks;
  std::atomic<int> copies{0};
  for (int rank = 0; rank < 8; ++rank)
    ranks.emplace_back([&] {
      staged(
          spec(),
          [&](const std::string& line) {
            if (line.starts_with("copied ")) ++copies;
          },
          {}, WhatIsInMemory::is_copied);
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(text("sub/b.bin"), "b");
}

TEST_F(StagingTest, AListThatWasCutOffCountsAsFarAsItGoes) {
  copy();
  const fs::path list = copied("").parent_path().parent_path() / "copied.jsonl";
  fs::resize_file(list, fs::file_size(list) - 5);
  copy();
  EXPECT_THAT(said_, Contains(HasSubstr("1 of 3 files")));
  copy();
  EXPECT_TRUE(said_.empty());
}

TEST_F(StagingTest, CopiesThatAreNoLongerUsedAreRemoved) {
  copy();
  folder_.write("copies/mine/file", "stays");
  const fs::path dir = folder_.path("copies");
  Json json = prune_copies(dir, std::chrono::hours(24), false);
  EXPECT_EQ(json.find("kept")->integer(), 1);
  json = prune_copies(dir, std::chrono::hours(0), true);
  ASSERT_EQ(json.find("removed")->array().size(), 1u);
  EXPECT_EQ(*json.find("removed")->array()[0].find("source")->find("path"),
            Json(folder_.path("d")));
  EXPECT_TRUE(fs::exists(copied("a.bin")));
  json = prune_copies(dir, std::chrono::hours(0), false);
  EXPECT_GT(json.find("bytes")->integer(), 9 << 20);
  EXPECT_FALSE(fs::exists(copied("a.bin")));
  EXPECT_TRUE(fs::exists(dir / "mine/file"));
}

TEST_F(StagingTest, ThePlanSaysWhatItTakes) {
  const std::string text = staging_text(spec());
  EXPECT_THAT(text,
              AllOf(HasSubstr("source.stage: "), testing::EndsWith("\n")));
  EXPECT_FALSE(fs::exists(folder_.path("copies")));
}

/// With a machine's profile in the cache, or none.
class StagingPredictionTest : public StagingTest {
 protected:
  StagingPredictionTest() {
    if (const char* is = std::getenv("XDG_CACHE_HOME")) before_ = is;
    ::setenv("XDG_CACHE_HOME", cache_.path("").c_str(), 1);
  }
  ~StagingPredictionTest() override {
    before_ ? ::setenv("XDG_CACHE_HOME", before_->c_str(), 1)
            : ::unsetenv("XDG_CACHE_HOME");
  }
  /// The plan, while the files are not in the page cache.
  std::string into_memory() const {
    const int file = ::open(folder_.path("d/a.bin").c_str(), O_RDONLY);
    ::fsync(file);
    (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
    SourceSpec memory = spec();
    memory.stage = "ram";
    return staging_text(memory);
  }

  std::optional<std::string> before_;
  TestFolder cache_;
};

TEST_F(StagingPredictionTest, IsByTheMachinesProfileWhereThereIsOne) {
  const std::string without = into_memory();
  if (without.find("epochs then") == std::string::npos)
    GTEST_SKIP() << "not to be measured here: " << without;
  EXPECT_THAT(without, HasSubstr("'penstock doctor' measures the speed"));
  Json profile;
  const Json machine = machine_json();
  for (const char* key : {"processor", "cpus", "kernel"})
    if (const Json* value = machine.find(key)) profile["of"][key] = *value;
  profile["memory_bytes_s"] = 1e15;
  cache_.write("penstock/machine.json", profile.dump());
  EXPECT_THAT(into_memory(), HasSubstr(" times as fast"));
}

TEST(KeptProfile, IsThatOfThisMachine) {
  TestFolder folder;
  EXPECT_TRUE(kept_profile(folder.path("")).is_null());
  const Json machine = machine_json();
  Json profile;
  for (const char* key : {"processor", "cpus", "kernel"})
    if (const Json* value = machine.find(key)) profile["of"][key] = *value;
  profile["of"]["device"] = "a GPU";
  folder.write("machine.json", profile.dump());
  EXPECT_EQ(kept_profile(folder.path("")), profile);
  profile["of"]["cpus"] = -1;
  folder.write("machine.json", profile.dump());
  EXPECT_TRUE(kept_profile(folder.path("")).is_null());
  folder.write("machine.json", "{");
  EXPECT_TRUE(kept_profile(folder.path("")).is_null());
}

TEST(FolderOfCopies, IsMemoryACacheOrOnesOwn) {
  EXPECT_EQ(folder_of_copies("/x/y"), "/x/y");
  EXPECT_EQ(folder_of_copies("disk").filename(), "stage");
}

}  // namespace
}  // namespace penstock
