// The process that indexes files, and what becomes of a file when it dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/files/test_folder.h"
#include "penstock/sources/hdf5/index_process.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using ::testing::HasSubstr;

class IndexProcessTest : public testing::Test {
 protected:
  IndexProcessTest() {
    set_log_writer([this](LogLevel, std::string_view text) {
      std::lock_guard lock(mutex_);
      warnings_ += text;
    });
  }
  ~IndexProcessTest() override { set_log_writer({}); }

  files::DataFile file(hsize_t rows = 1000) {
    const std::string path = folder_.path("a.h5");
    TestFile(path).write("x", std::vector<double>(rows, 1),
                         {.chunk = 10, .deflate = 1});
    return files::file_at(path, "a.h5");
  }
  std::string error_of(IndexProcess& process, const files::DataFile& of) {
    try {
      process.index(of);
    } catch (const Error& error) {
      return error.parts().code + ": " + error.what();
    }
    return "";
  }

  files::TestFolder folder_;
  std::mutex mutex_;
  std::string warnings_;
};

TEST_F(IndexProcessTest, FindsEachChunkOnce) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  const FileIndex index = process.index(of);
  const DataSet* set = index.find("/x");
  ASSERT_NE(set, nullptr);
  ASSERT_EQ(std::ssize(set->places), 100);
  for (std::size_t at = 0; at < 100; ++at) {
    EXPECT_GT(set->places[at].bytes, 0U);
    for (std::size_t other = 0; other < at; ++other)
      EXPECT_NE(set->places[at].offset, set->places[other].offset);
  }
}

TEST_F(IndexProcessTest, ThatIsKilledIsNamedAndAnotherGoesOn) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  process.index(of);
  const pid_t first = process.number();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_EQ(std::ssize(process.index(of).find("/x")->places), 100);
  EXPECT_NE(process.number(), first);
  EXPECT_THAT(warnings_, HasSubstr("a.h5"));
  EXPECT_THAT(warnings_, HasSubstr("killed (SIGKILL)"));
}

TEST_F(IndexProcessTest, ThatIsHungIsNamedAndAnotherGoesOn) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  process.index(of);
  const pid_t first = process.number();
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  EXPECT_EQ(std::ssize(process.index(of).find("/x")->places), 100);
  EXPECT_NE(process.number(), first);
  EXPECT_THAT(warnings_, HasSubstr("made no progress"));
}

TEST_F(IndexProcessTest, ThatCrashesIsAnErrorOfItsFile) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  process.index(of);
  ASSERT_EQ(::kill(process.number(), SIGSEGV), 0);
  EXPECT_THAT(
      error_of(process, of),
      testing::AllOf(HasSubstr("hdf5.crashed"), HasSubstr(of.path),
                     // A sanitizer makes an exit of the signal, unless what it
                     // has to say is more than the process may write.
                     testing::AnyOf(HasSubstr("SIGSEGV"), HasSubstr("status 1"),
                                    HasSubstr("SIGXFSZ"))));
  EXPECT_EQ(error_of(process, of), "") << "the next file has a new process";
}

/// The processor time that a machine under load takes away is not counted, so
/// it is waited for a little longer than the 2 seconds that users are promised.
constexpr double kMostSeconds = 6;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

TEST_F(IndexProcessTest, ThatIsKilledOrHungIsNamedSoon) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  process.index(of);
  for (int signal : {SIGKILL, SIGSTOP}) {
    warnings_.clear();
    ASSERT_EQ(::kill(process.number(), signal), 0);
    EXPECT_LT(seconds_of([&] { process.index(of); }), kMostSeconds) << signal;
    EXPECT_NE(warnings_, "") << signal;
  }
}

#ifndef PENSTOCK_SANITIZED  // they take more addresses by themselves
TEST_F(IndexProcessTest, ThatIsOutOfMemoryIsAnErrorOfItsFile) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  process.index(of);
  const rlimit little{.rlim_cur = 64 << 20, .rlim_max = 64 << 20};
  ASSERT_EQ(::prlimit(process.number(), RLIMIT_AS, &little, nullptr), 0);
  files::DataFile large = file(400'000);
  EXPECT_THAT(error_of(process, large),
              testing::AllOf(HasSubstr("hdf5.memory"), HasSubstr(of.path)));
  IndexProcess other(nullptr);
  EXPECT_EQ(error_of(other, large), "");
}
#endif

TEST_F(IndexProcessTest, RefusesWhatIsNoHdf5) {
  IndexProcess process(nullptr);
  folder_.write("b.h5", "abc");
  const auto of = files::file_at(folder_.path("b.h5"), "b.h5");
  EXPECT_THAT(error_of(process, of), HasSubstr("hdf5.no_hdf5"));
}

TEST_F(IndexProcessTest, RefusesAFileThatIsCutOff) {
  IndexProcess process(nullptr);
  files::DataFile of = file();
  std::filesystem::resize_file(of.path,
                               static_cast<std::uintmax_t>(of.bytes - 300));
  of = files::file_at(of.path, "a.h5");
  EXPECT_THAT(error_of(process, of),
              testing::AnyOf(HasSubstr("hdf5.damaged"), HasSubstr("hdf5.")));
}

TEST_F(IndexProcessTest, RefusesAFileThatIsOpenForWriting) {
  IndexProcess process(nullptr);
  const files::DataFile of = file();
  const Descriptor held = files::open_file(of.path);
  ASSERT_EQ(::flock(held.number(), LOCK_EX), 0);
  EXPECT_THAT(error_of(process, of), HasSubstr("hdf5.writing"));
}

TEST_F(IndexProcessTest, NamesAWriterWithManyReaders) {
  const std::string path = folder_.path("swmr.h5");
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const hid_t written =
      H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  ASSERT_GE(H5Fstart_swmr_write(written), 0);
  IndexProcess process(nullptr);
  EXPECT_THAT(error_of(process, files::file_at(path, "swmr.h5")),
              testing::AllOf(HasSubstr("hdf5.writing"), HasSubstr("SWMR")));
  H5Fclose(written);
  H5Pclose(access);
}

}  // namespace
}  // namespace penstock::hdf5
