#include "penstock/base/file_stamp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace penstock {
namespace {

namespace fs = std::filesystem;

class FileStampTest : public testing::Test {
 protected:
  FileStampTest() {
    std::string pattern = testing::TempDir() + "stampXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileStampTest() override { fs::remove_all(folder_); }

  std::string write(const char* name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  /// Gives a file the modification time of another one, as `cp -p` does.
  static void take_time(const std::string& path, const std::string& of) {
    struct stat found {};
    ASSERT_EQ(::stat(of.c_str(), &found), 0);
    const timespec times[] = {found.st_atim, found.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  static void pass_a_tick() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  std::string folder_;
};

TEST_F(FileStampTest, StaysTheSameWhileNobodyTouchesTheFile) {
  const std::string path = write("a", "1234");
  const auto before = stamp_of(path);
  ASSERT_TRUE(before.has_value());
  std::ifstream(path).get();
  EXPECT_EQ(stamp_of(path), before);
}

TEST_F(FileStampTest, SeesAFileOfTheSameSizeAndTimeThatTookItsName) {
  const std::string path = write("a", "1234");
  const auto before = stamp_of(path);
  const std::string other = write("b", "5678");
  take_time(other, path);
  fs::rename(other, path);
  const auto after = stamp_of(path);
  EXPECT_EQ(after->bytes, before->bytes);
  EXPECT_EQ(after->modified_ns, before->modified_ns);
  EXPECT_NE(after, before);
}

TEST_F(FileStampTest, SeesBytesThatWereOverwrittenAndTheTimeSetBack) {
  const std::string path = write("a", "1234");
  const std::string time = write("time", "");
  take_time(time, path);
  const auto before = stamp_of(path);
  pass_a_tick();
  write("a", "5678");
  take_time(path, time);
  const auto after = stamp_of(path);
  EXPECT_EQ(after->inode, before->inode);
  EXPECT_EQ(after->modified_ns, before->modified_ns);
  EXPECT_NE(after, before);
}

TEST_F(FileStampTest, DoesNotDependOnTheNumberOfTheDevice) {
  const FileStamp one{.device = 1, .inode = 7, .bytes = 3};
  FileStamp mounted_again = one;
  mounted_again.device = 2;
  EXPECT_EQ(one, mounted_again);

  FileStamps before, after;
  before.add(one);
  after.add(mounted_again);
  EXPECT_EQ(before.hex(), after.hex());
}

TEST_F(FileStampTest, TellsFilesOfOneListApartByTheirDevices) {
  const FileStamp one{.device = 1, .inode = 7, .bytes = 3};
  FileStamp on_other_disk = one;
  on_other_disk.device = 2;

  FileStamps same_disk, two_disks;
  same_disk.add(one);
  same_disk.add(one);
  two_disks.add(one);
  two_disks.add(on_other_disk);
  EXPECT_NE(same_disk.hex(), two_disks.hex());
}

TEST_F(FileStampTest, CountsAFileThatIsMissing) {
  EXPECT_FALSE(stamp_of(folder_ + "/none").has_value());
  FileStamps none, empty;
  none.add(std::nullopt);
  EXPECT_NE(none.hex(), empty.hex());
}

TEST_F(FileStampTest, AFileThatIsMissingWasThereIfItsFolderHasChanged) {
  fs::create_directory(folder_ + "/sub");
  write("sub/a", "1");
  const std::int64_t opened = file_clock_ns();
  EXPECT_FALSE(may_be_gone_since(opened, folder_ + "/sub/b"));
  EXPECT_FALSE(may_be_gone_since(opened, folder_ + "/other/b"));
  pass_a_tick();
  fs::remove(folder_ + "/sub/a");
  EXPECT_TRUE(may_be_gone_since(opened, folder_ + "/sub/a"));
  fs::remove(folder_ + "/sub");
  EXPECT_TRUE(may_be_gone_since(opened, folder_ + "/sub/a"));
}

TEST_F(FileStampTest, AFileMadeBeforeIsOlderThanTheClock) {
  const auto before = stamp_of(write("a", "1"));
  const std::int64_t opened = file_clock_ns();
  EXPECT_LE(before->changed_ns, opened);
  pass_a_tick();
  EXPECT_GT(stamp_of(write("a", "2"))->changed_ns, opened);
}

}  // namespace
}  // namespace penstock
