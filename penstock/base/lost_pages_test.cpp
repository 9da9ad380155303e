#include "penstock/base/lost_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace penstock {
namespace {

/// A mapped file of so many pages of ones.
class LostPagesTest : public testing::Test {
 protected:
  static constexpr std::size_t kPages = 8;

  LostPagesTest() {
    std::string pattern = testing::TempDir() + "pagesXXXXXX";
    file_ = ::mkstemp(pattern.data());
    ::unlink(pattern.c_str());
    const std::string ones(size(), '\1');
    EXPECT_EQ(::write(file_, ones.data(), ones.size()),
              static_cast<ssize_t>(ones.size()));
    data_ = static_cast<const char*>(
        ::mmap(nullptr, size(), PROT_READ, MAP_SHARED, file_, 0));
  }
  ~LostPagesTest() override {
    ::munmap(const_cast<char*>(data_), size());
    ::close(file_);
  }
  static std::size_t page() {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  static std::size_t size() { return kPages * page(); }
  void cut_to(std::size_t pages) const {
    ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(pages * page())), 0);
  }
  int at(std::size_t which) const {
    return *static_cast<const volatile char*>(data_ + which * page());
  }

  int file_ = -1;
  const char* data_ = nullptr;
};

TEST_F(LostPagesTest, AreReadAsZerosAndCounted) {
  const LostPages guard(data_, size());
  EXPECT_EQ(at(5), 1);
  EXPECT_EQ(guard.count(), 0);
  cut_to(4);
  EXPECT_EQ(at(3), 1);
  EXPECT_EQ(guard.count(), 0);
  EXPECT_EQ(at(5), 0);
  EXPECT_EQ(at(7), 0);
  EXPECT_EQ(guard.count(), 2);
  EXPECT_EQ(at(5), 0);  // that page is not lost twice
  EXPECT_EQ(guard.count(), 2);
}

TEST_F(LostPagesTest, OfOneMappingAreNotThoseOfAnother) {
  const std::vector<char> other(64);
  const LostPages guard(data_, size());
  const LostPages elsewhere(other.data(), other.size());
  cut_to(0);
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(guard.count(), 1);
  EXPECT_EQ(elsewhere.count(), 0);
}

TEST_F(LostPagesTest, MayBeTouchedByManyThreadsAtOnce) {
  const LostPages guard(data_, size());
  cut_to(0);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([this] {
        for (std::size_t page = 0; page < kPages; ++page)
          EXPECT_EQ(at(page), 0);
      });
  }
  EXPECT_GE(guard.count(), std::int64_t{kPages});
}

using LostPagesDeathTest = LostPagesTest;

TEST_F(LostPagesDeathTest, WithoutAGuardEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // By the signal, or by whoever handled it before, such as a sanitizer.
  EXPECT_DEATH(
      {
        { const LostPages guard(data_, size()); }
        cut_to(0);
        at(0);
      },
      "");
}

}  // namespace
}  // namespace penstock
