#include "penstock/inspect/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

using testing::HasSubstr;

bool flag(const Json& json, const char* key) {
  return std::get<bool>(json.find(key)->value());
}

class PrepareTest : public testing::Test {
 protected:
  Job job(std::vector<std::string> sets = {}) {
    sets.push_back("loader.cache_dir=" + positions_.path("stores"));
    return positions_.job(sets);
  }
  PositionsRun positions_;
};

TEST_F(PrepareTest, FillsTheStoreThatEveryRunOfTheJobThenFinds) {
  std::vector<std::string> lines;
  ScanProgress last;
  const Json first = prepare_job(
      job(),
      {.note = [&](const std::string& line) { lines.push_back(line); },
       .progress =
           [&](const ScanProgress& progress) {
             EXPECT_GT(progress.rows, last.rows);
             last = progress;
           }},
      {});
  EXPECT_FALSE(flag(first, "already"));
  EXPECT_EQ(last.expected, last.rows);
  EXPECT_GE(last.rows, first.find("documents")->integer());
  EXPECT_THAT(lines.back(), HasSubstr("disk"));
  const std::filesystem::path store = first.find("store")->string();
  EXPECT_EQ(static_cast<std::int64_t>(std::filesystem::file_size(store)),
            first.find("bytes")->integer());
  for (const char* cache : {"auto", "ram", "disk"})
    EXPECT_TRUE(
        flag(why_store(job({std::string("loader.cache=") + cache})), "hit"))
        << cache;
  EXPECT_TRUE(flag(prepare_job(job(), {}, {}), "already"));
}

TEST_F(PrepareTest, RemovesWhatAKilledOneLeftBeforeItScans) {
  const std::string left =
      why_store(job({"loader.cache=disk"})).find("store")->string() + ".tmp.00";
  real_files().make_folders(positions_.path("stores"));
  real_files().write_atomic(left, "a half store");
  prepare_job(job(),
              {.progress =
                   [&](const ScanProgress&) {
                     EXPECT_FALSE(std::filesystem::exists(left));
                   }},
              {});
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(PrepareTest, LeavesNoStoreWhereItIsInterrupted) {
  const std::atomic<bool> stop{true};
  EXPECT_THROW(prepare_job(job(), {}, &stop), Error);
  EXPECT_FALSE(flag(why_store(job({"loader.cache=disk"})), "hit"));
  EXPECT_FALSE(flag(prepare_job(job(), {}, {}), "already"));
}

}  // namespace
}  // namespace penstock
