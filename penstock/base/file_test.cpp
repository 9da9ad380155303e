#include "penstock/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/temporary.h"

namespace penstock {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::size_t entries() const {
    std::filesystem::directory_iterator it(folder_);
    return static_cast<std::size_t>(std::distance(begin(it), end(it)));
  }
  std::filesystem::path folder_;
};

TEST_F(FileTest, APipeIsReadWhereAProgramWritesToItAndElseRefused) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refusal = [&](const std::filesystem::path& path) -> std::string {
    try {
      real_files().read(path);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(refusal(pipe), testing::HasSubstr("it is a pipe"));
  EXPECT_THAT(refusal("/dev/zero"), testing::HasSubstr("a device"));
  EXPECT_THROW(real_files().map(pipe), Error);
  const int writer = ::open(pipe.c_str(), O_RDWR);
  ASSERT_GE(writer, 0);
  std::string text;
  std::thread reads([&] { text = real_files().read(pipe); });
  const std::string long_text(200'000, 'x');
  for (std::size_t at = 0; at < long_text.size(); at += 20'000)
    ASSERT_EQ(::write(writer, long_text.data() + at, 20'000), 20'000);
  int left = 1;  // the writer reads, too: it closes once all is taken
  while (left > 0) ASSERT_EQ(::ioctl(writer, FIONREAD, &left), 0);
  ::close(writer);
  reads.join();
  EXPECT_EQ(text, long_text);
}

TEST_F(FileTest, AtomicWriteReplacesTheWholeFileAndLeavesNoOther) {
  FileSystem& files = real_files();
  files.write_atomic(folder_ / "a", "first, and longer");
  files.write_atomic(folder_ / "a", "second");
  EXPECT_EQ(files.read(folder_ / "a"), "second");
  EXPECT_EQ(entries(), 1u);
}

unsigned mode_of(const std::filesystem::path& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

TEST_F(FileTest, WhatItsOwnerAloneMayReadIsMadeSo) {
  FileSystem& files = real_files();
  const mode_t before = ::umask(0);
  files.make_folders(folder_ / "own/deeper", Readers::owner);
  files.make_folders(folder_ / "own", Readers::as_umask);
  files.write(folder_ / "a", "x", Lasting::now, Readers::owner);
  files.create(folder_ / "b", Readers::owner)->commit(Lasting::later);
  files.append_line(folder_ / "c", "x", Readers::owner);
  files.write_atomic(folder_ / "d", "x");
  const TemporaryFile scratch(folder_ / "e");
  ::umask(before);
  for (const char* folder : {"own", "own/deeper"})
    EXPECT_EQ(mode_of(folder_ / folder), 0700u);
  for (const char* file : {"a", "b", "c"})
    EXPECT_EQ(mode_of(folder_ / file), 0600u) << file;
  EXPECT_EQ(mode_of(folder_ / "d"), 0644u);
  struct stat found {};
  ASSERT_EQ(::fstat(scratch.number(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  try {
    files.make_folders(folder_ / "a/b", Readers::owner);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "file.write");
  }
}

TEST_F(FileTest, AWriteThatFailsNamesThePathAndLeavesTheOldFile) {
  FileSystem& files = real_files();
  std::filesystem::create_directory(folder_ / "taken");
  try {
    files.write_atomic(folder_ / "taken", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().where, (folder_ / "taken").string());
  }
  EXPECT_EQ(entries(), 1u) << "no temporary file is left";
}

TEST_F(FileTest, APipeOrDeviceIsWrittenToAndStaysOne) {
  const std::filesystem::path pipe = folder_ / "pipe", link = folder_ / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, link);  // as /dev/stdout is
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  real_files().write_atomic(link, "through it");
  char bytes[64];
  const ssize_t count = ::read(reader, bytes, sizeof(bytes));
  ::close(reader);
  EXPECT_EQ(std::string(bytes, static_cast<std::size_t>(count)), "through it");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FileTest, APipeThatNobodyReadsIsRefusedAndNotWaitedFor) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  try {
    real_files().write_atomic(pipe, "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.parts().why,
                testing::HasSubstr("no program reads the pipe"));
  }
}

// As --output /dev/stdout >> log.
TEST_F(FileTest, AFileThatIsOpenIsWrittenAtItsEnd) {
  FileSystem& files = real_files();
  files.write_atomic(folder_ / "log", "before, ");
  const int file = ::open((folder_ / "log").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(file, 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(file),
                                  folder_ / "out");
  files.write_atomic(folder_ / "out", "through it, ");
  EXPECT_EQ(::write(file, "after", 5), 5);
  ::close(file);
  EXPECT_EQ(files.read(folder_ / "log"), "before, through it, after");
}

TEST_F(FileTest, TheFileBehindALinkIsReplacedAndTheLinkStays) {
  FileSystem& files = real_files();
  files.write_atomic(folder_ / "a", "first");
  std::filesystem::create_symlink("a", folder_ / "link");
  files.write_atomic(folder_ / "link", "second");
  EXPECT_EQ(files.read(folder_ / "a"), "second");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FileTest, AMissingFileIsASourceError) {
  try {
    real_files().read(folder_ / "none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().why, "No such file or directory");
    EXPECT_EQ(error.parts().next, "check the path");
  }
}

TEST_F(FileTest, AFolderThatIsReadAsAFileIsNamed) {
  try {
    real_files().read(folder_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().where, folder_.string());
    EXPECT_EQ(error.parts().why, "Is a directory");
    EXPECT_EQ(error.parts().next, "name a file in it");
  }
}

/// Lets the system take no byte of a file beyond this size meanwhile, as a disk
/// does that is full: a write ends in the middle.
class FullAt {
 public:
  explicit FullAt(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  ~FullAt() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  FullAt(const FullAt&) = delete;
  FullAt& operator=(const FullAt&) = delete;

 private:
  sighandler_t signal_;
  rlimit before_{};
};

TEST_F(FileTest, ALineThatFindsNoRoomLeavesNoPieceAndSaysSo) {
  FileSystem& files = real_files();
  files.append_line(folder_ / "log", "first");
  {
    FullAt limit(10);
    try {
      files.append_line(folder_ / "log", "second, and longer");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "file.write");
      EXPECT_EQ(error.parts().where, (folder_ / "log").string());
      EXPECT_EQ(error.parts().why, "File too large; the file is unchanged");
      EXPECT_THAT(error.parts().next, testing::HasSubstr("ulimit -f"));
    }
    EXPECT_EQ(files.read(folder_ / "log"), "first\n");
    files.append_line(folder_ / "log", "3rd");
  }
  files.append_line(folder_ / "log", "fourth");
  EXPECT_EQ(files.read(folder_ / "log"), "first\n3rd\nfourth\n");
}

TEST_F(FileTest, APieceThatCannotBeTakenBackIsNamed) {
  try {
    real_files().append_line("/dev/full", "line");  // cannot be cut either
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        error.parts().why,
        "No space left on device; after byte 0 the file may hold a part of a "
        "line");
    EXPECT_THAT(error.parts().next, testing::HasSubstr("free some space"));
  }
}

TEST_F(FileTest, ALineForAFolderIsRefused) {
  try {
    real_files().append_line(folder_, "line");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().why, "Is a directory");
  }
}

TEST_F(FileTest, LinesAndLinks) {
  FileSystem& files = real_files();
  files.make_folders(folder_ / "x" / "y");
  files.append_line(folder_ / "x" / "log", "1");
  files.append_line(folder_ / "x" / "log", "2");
  EXPECT_EQ(files.read(folder_ / "x" / "log"), "1\n2\n");
  files.link_to("x", folder_ / "latest");
  files.link_to("x/y", folder_ / "latest");
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "latest"), "x/y");
}

TEST(VirtualClock, MovesOnlyWhenSomebodySleeps) {
  VirtualClock clock;
  EXPECT_EQ(clock.now(), Nanoseconds(0));
  clock.sleep_until(Nanoseconds(50));
  clock.sleep_until(Nanoseconds(20));
  EXPECT_EQ(clock.now(), Nanoseconds(50));
}

TEST(UtcText, IsIsoWithMilliseconds) {
  EXPECT_EQ(utc_text(std::chrono::system_clock::time_point(
                std::chrono::milliseconds(1700000000125))),
            "2023-11-14T22:13:20.125Z");
}

}  // namespace
}  // namespace penstock
