#include "penstock/device/cpu/host_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>

namespace penstock {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A machine of 64 MiB with 32 MiB free, in a folder.
class HostLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-limits-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    file("proc/meminfo",
         "MemTotal:          65536 kB\nMemFree: 5 kB\n"
         "MemAvailable:      32768 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void group(const std::string& line) { file("proc/self/cgroup", line); }
  void v2(const std::string& folder, std::string limit, std::size_t used) {
    file("sys/fs/cgroup/" + folder + "memory.max", limit + "\n");
    file("sys/fs/cgroup/" + folder + "memory.current",
         std::to_string(used) + "\n");
  }
  void expect(std::size_t free, std::size_t total) {
    DeviceMemory memory = host_limits(root_);
    EXPECT_EQ(memory.free, free);
    EXPECT_EQ(memory.total, total);
  }
  std::filesystem::path root_;
};

TEST_F(HostLimitsTest, AreTheMachinesWithoutACgroup) {
  expect(32 * kMiB, 64 * kMiB);
}

TEST_F(HostLimitsTest, AreTheTightestOfACgroupAndThoseAboveIt) {
  group("0::/outer/inner\n");
  v2("outer/inner/", "max", kMiB);
  v2("outer/", std::to_string(16 * kMiB), 4 * kMiB);
  expect(12 * kMiB, 16 * kMiB);
}

TEST_F(HostLimitsTest, FileCacheCountsAsFree) {
  group("0::/\n");
  v2("", std::to_string(16 * kMiB), 15 * kMiB);
  file("sys/fs/cgroup/memory.stat",
       "anon 1\ninactive_file_x 3\ninactive_file " + std::to_string(5 * kMiB) +
           "\n");
  expect(6 * kMiB, 16 * kMiB);
}

TEST_F(HostLimitsTest, AContainerSeesItsLimitAtTheMount) {
  group("0::/docker/0123\n");
  v2("", std::to_string(16 * kMiB), 4 * kMiB);
  expect(12 * kMiB, 16 * kMiB);
  group("0::/../other\n");
  expect(12 * kMiB, 16 * kMiB);
}

TEST_F(HostLimitsTest, KnowTheFirstVersionOfCgroups) {
  group("12:cpu,cpuacct:/a\n4:memory:/job\n1:name=systemd:/b\n0::/\n");
  std::string folder = "sys/fs/cgroup/memory/job/";
  file(folder + "memory.limit_in_bytes", std::to_string(8 * kMiB));
  file(folder + "memory.usage_in_bytes", std::to_string(3 * kMiB));
  file(folder + "memory.stat", "total_inactive_file " + std::to_string(kMiB));
  expect(6 * kMiB, 8 * kMiB);
}

TEST_F(HostLimitsTest, AFullCgroupHasNothingFree) {
  group("0::/\n");
  v2("", std::to_string(4 * kMiB), 5 * kMiB);
  expect(0, 4 * kMiB);
}

TEST_F(HostLimitsTest, WhatCannotBeReadIsNoLimit) {
  std::filesystem::remove_all(root_ / "proc");
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  expect(kNone, kNone);
}

TEST(HostLimits, OfThisMachineAreSane) {
  DeviceMemory memory = host_limits();
  EXPECT_GT(memory.total, 16 * kMiB);
  EXPECT_LE(memory.free, memory.total);
}

}  // namespace
}  // namespace penstock
