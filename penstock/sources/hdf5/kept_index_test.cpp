// The index of a large file is made once.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "penstock/base/error.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/files/test_folder.h"
#include "penstock/sources/hdf5/index_process.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

namespace fs = std::filesystem;

class KeptIndex : public testing::Test {
 protected:
  KeptIndex() {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", cache_.path("").c_str(), 1);
  }
  ~KeptIndex() override {
    if (before_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  /// Written a while ago.
  files::DataFile file(std::size_t chunks = 5000, double value = 1) {
    const std::string path = folder_.path("a.h5");
    TestFile(path).write("x", std::vector<double>(chunks, value),
                         {.chunk = 1, .deflate = 1});
    timespec times[] = {{.tv_sec = ++written_, .tv_nsec = 0},
                        {.tv_sec = written_, .tv_nsec = 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return files::file_at(path, "a.h5");
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> found;
    const fs::path folder = fs::path(cache_.path("penstock")) / "indexes";
    if (fs::exists(folder))
      for (const auto& one : fs::directory_iterator(folder))
        found.push_back(one.path());
    return found;
  }
  /// How many chunks there are, and whether a process was asked for them.
  std::pair<std::size_t, bool> indexed(const files::DataFile& of) {
    IndexProcess process(nullptr);
    const FileIndex index = process.index(of);
    return {index.find("/x")->places.size(), process.number() != 0};
  }

  files::TestFolder folder_, cache_;
  std::string before_;
  time_t written_ = 1'000'000'000;
};

using Found = std::pair<std::size_t, bool>;

TEST_F(KeptIndex, AnswersTheNextStartWithoutAProcess) {
  const files::DataFile of = file();
  IndexProcess process(nullptr);
  const FileIndex made = process.index(of);
  ASSERT_EQ(kept().size(), 1U);
  IndexProcess other(nullptr);
  const FileIndex again = other.index(of);
  EXPECT_EQ(other.number(), 0);
  const DataSet &one = *made.find("/x"), &two = *again.find("/x");
  ASSERT_EQ(one.places.size(), two.places.size());
  for (std::size_t at = 0; at < one.places.size(); ++at) {
    EXPECT_EQ(one.places[at].offset, two.places[at].offset);
    EXPECT_EQ(one.places[at].bytes, two.places[at].bytes);
  }
  EXPECT_EQ(two.type.shown(), "float64");
  EXPECT_EQ(two.filters.size(), 1U);
}

TEST_F(KeptIndex, IsMadeAnewWhereTheFileIsAnother) {
  EXPECT_EQ(indexed(file()), Found(5000, true));
  EXPECT_EQ(indexed(file(6000)), Found(6000, true));
  EXPECT_EQ(indexed(files::file_at(folder_.path("a.h5"), "a.h5")),
            Found(6000, false));
  // Of the same size and time.
  --written_;
  EXPECT_EQ(indexed(file(6000, 2)), Found(6000, true));
}

TEST_F(KeptIndex, IsMadeAnewWhereItIsDamaged) {
  const files::DataFile of = file();
  indexed(of);
  const fs::path place = kept().at(0);
  const auto size = fs::file_size(place);
  for (std::uintmax_t at : {std::uintmax_t{0}, std::uintmax_t{9},
                            std::uintmax_t{17}, size / 2, size - 1}) {
    {
      std::fstream damaged(place, std::ios::in | std::ios::out);
      damaged.seekg(static_cast<std::streamoff>(at));
      const int was = damaged.get();
      damaged.seekp(static_cast<std::streamoff>(at));
      damaged.put(static_cast<char>(was ^ 4));
    }
    EXPECT_EQ(indexed(of), Found(5000, true)) << at;
    EXPECT_EQ(indexed(of), Found(5000, false)) << at;
  }
  for (std::uintmax_t left :
       {std::uintmax_t{0}, std::uintmax_t{20}, size - 1}) {
    fs::resize_file(place, left);
    EXPECT_EQ(indexed(of), Found(5000, true)) << left;
  }
}

TEST_F(KeptIndex, OnesThatNobodyReadsGoWhenAnotherIsKept) {
  indexed(file());
  ASSERT_EQ(kept().size(), 1U);
  const fs::path unused = kept()[0].parent_path() / "unused.hdf5";
  for (const fs::path& path : {unused, unused.parent_path() / "used.hdf5"})
    std::ofstream(path) << "x";
  const timespec long_ago[] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0},
                               {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, unused.c_str(), long_ago, 0), 0);
  indexed(file(5000, 2));
  EXPECT_FALSE(fs::exists(unused));
  EXPECT_EQ(kept().size(), 2U);
}

TEST_F(KeptIndex, IsOfNoSmallFileAndOfNoneThatIsStillWritten) {
  indexed(file(100));
  EXPECT_TRUE(kept().empty());
  const std::string path = folder_.path("b.h5");
  TestFile(path).write("x", std::vector<double>(5000, 1), {.chunk = 1});
  indexed(files::file_at(path, "b.h5"));
  EXPECT_TRUE(kept().empty()) << "it may change in the same moment";
}

TEST_F(KeptIndex, DoesNotHideThatAnotherProgramWrites) {
  const files::DataFile of = file();
  indexed(of);
  const Descriptor held = files::open_file(of.path);
  ASSERT_EQ(::flock(held.number(), LOCK_EX), 0);
  try {
    indexed(of);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "hdf5.writing");
  }
}

}  // namespace
}  // namespace penstock::hdf5
