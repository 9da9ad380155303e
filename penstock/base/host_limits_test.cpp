#include "penstock/base/host_limits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "penstock/base/kernel_files.h"

namespace penstock {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A machine of 8 GiB with 6 GiB free, in a folder.
class HostLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-limits-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    file("proc/meminfo",
         "MemTotal:        8388608 kB\nMemFree:               5 kB\n"
         "MemAvailable:    6291456 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void group(const std::string& lines) { file("proc/self/cgroup", lines); }
  void mounts(const std::string& lines) { file("proc/self/mountinfo", lines); }
  /// A folder of the version 2 tree; "" is its top.
  void v2(const std::string& folder, const std::string& limit,
          std::size_t used_mib) {
    file("sys/fs/cgroup/" + folder + "memory.max", limit + "\n");
    file("sys/fs/cgroup/" + folder + "memory.current",
         std::to_string(used_mib * kMiB) + "\n");
  }
  void v1(const std::string& folder, std::size_t limit_mib,
          std::size_t used_mib) {
    std::string at = "sys/fs/cgroup/memory/" + folder;
    file(at + "memory.limit_in_bytes", mib(limit_mib));
    file(at + "memory.usage_in_bytes", mib(used_mib));
  }
  static std::string mib(std::size_t count) {
    return std::to_string(count * kMiB);
  }
  HostLimits limits() const { return read_host_limits(root_); }
  void expect_mib(std::size_t free, std::size_t total) {
    EXPECT_EQ(limits().memory_free, free * kMiB);
    EXPECT_EQ(limits().memory, total * kMiB);
  }
  std::filesystem::path root_;
};

TEST_F(HostLimitsTest, AreTheMachinesWithoutACgroup) {
  expect_mib(6144, 8192);
  EXPECT_EQ(limits().memory_origin, "MemTotal");
  EXPECT_EQ(limits().free_origin, "MemAvailable");
  EXPECT_GE(limits().cpus, 1);
  EXPECT_EQ(limits().cpus_origin, "affinity");
}

TEST(CpuAffinity, ListsTheProcessorsOfThisProcess) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  const std::string listed = read_cpu_affinity();
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(listed, std::to_string(first));
}

TEST_F(HostLimitsTest, AFullParentLeavesLittleToARoomyChild) {
  group("0::/parent/own\n");
  v2("parent/own/", mib(2048), 0);
  v2("parent/", mib(4096), 4000);
  expect_mib(96, 2048);
  EXPECT_EQ(limits().memory_origin, "/sys/fs/cgroup/parent/own/memory.max");
  EXPECT_EQ(limits().free_origin, "/sys/fs/cgroup/parent");
}

TEST_F(HostLimitsTest, AFullParentCountsInTheFirstVersionToo) {
  group("4:memory:/parent/own\n0::/\n");
  v1("parent/own/", 2048, 0);
  v1("parent/", 4096, 4000);
  expect_mib(96, 2048);
}

TEST_F(HostLimitsTest, ALimitAboveWhatTheMachineHasFreeChangesNothing) {
  group("0::/own\n");
  v2("own/", mib(7000), 0);
  expect_mib(6144, 7000);
  EXPECT_EQ(limits().free_origin, "MemAvailable");
}

TEST_F(HostLimitsTest, AGroupWithoutALimitOfItsOwnHasThatOfItsParent) {
  group("0::/outer/inner\n");
  v2("outer/inner/", "max", 1);
  v2("outer/", mib(16), 4);
  expect_mib(12, 16);
}

TEST_F(HostLimitsTest, FileCacheCountsAsFree) {
  group("0::/\n");
  v2("", mib(16), 15);
  file("sys/fs/cgroup/memory.stat",
       "anon 1\ninactive_file_x 3\ninactive_file " + mib(5) + "\n");
  expect_mib(6, 16);
}

TEST_F(HostLimitsTest, AFullCgroupHasNothingFree) {
  group("0::/\n");
  v2("", mib(4), 5);
  expect_mib(0, 4);
}

TEST_F(HostLimitsTest, AContainerSeesItsLimitAtTheMount) {
  group("0::/docker/0123\n");
  v2("", mib(16), 4);
  expect_mib(12, 16);
  group("0::/../other\n");
  expect_mib(12, 16);
}

TEST_F(HostLimitsTest, AMountMayShowAPartOfTheTree) {
  group("0::/docker/0123/job\n");
  mounts("30 23 0:26 /docker/0123 /groups rw shared:9 - cgroup2 cgroup2 rw\n");
  file("groups/job/memory.max", mib(8));
  file("groups/job/memory.current", mib(2));
  expect_mib(6, 8);
}

TEST_F(HostLimitsTest, ReadsVersion1BesideAnEmptyVersion2) {
  group("5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/b\n0::/other\n");
  mounts(
      "31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "33 23 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  v1("job/", 512, 12);
  file("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 4\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "25000\n");
  file("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(limits().cpus, 0.25);
  EXPECT_EQ(limits().cpus_origin, "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us");
  EXPECT_EQ(limits().memory, 512 * kMiB);
  EXPECT_EQ(limits().memory_free, 500 * kMiB + 4);
}

TEST_F(HostLimitsTest, TheSmallestQuotaOfAllParentsCounts) {
  group("0::/job/inner\n");
  file("sys/fs/cgroup/job/inner/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(limits().cpus, 0.5);
  EXPECT_EQ(limits().cpus_origin, "/sys/fs/cgroup/job/cpu.max");
}

TEST_F(HostLimitsTest, WhatCannotBeReadIsUnknown) {
  std::filesystem::remove_all(root_ / "proc");
  EXPECT_EQ(limits().memory, std::nullopt);
  EXPECT_EQ(limits().memory_free, std::nullopt);
}

TEST_F(HostLimitsTest, ALimitWhoseUseIsNotToldStillBoundsWhatIsFree) {
  group("0::/\n");
  file("sys/fs/cgroup/memory.max", mib(16));
  expect_mib(16, 16);
  file("proc/meminfo", "");
  EXPECT_EQ(limits().memory, 16 * kMiB);
  EXPECT_EQ(limits().memory_free, std::nullopt);
}

TEST_F(HostLimitsTest, AnUnlimitedFirstVersionIsNoLimit) {
  std::filesystem::remove_all(root_ / "proc");
  group("4:memory:/\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  EXPECT_EQ(limits().memory, std::nullopt);
}

TEST_F(HostLimitsTest, ALimitOfAddressesCountsAllThatIsMapped) {
  const std::string limits_file =
      "Limit                     Soft Limit           Hard Limit      Units\n"
      "Max processes             96365                96365        processes\n"
      "Max address space         ";
  file("proc/self/limits", limits_file + "unlimited            unlimited\n");
  file("proc/self/status", "VmPeak:\t  409600 kB\nVmSize:\t  204800 kB\n");
  expect_mib(6144, 8192);
  EXPECT_EQ(limits().addresses_free, std::nullopt);
  file("proc/self/limits", limits_file + mib(500) + "            unlimited\n");
  expect_mib(300 - 64, 500);  // less the stacks of threads
  EXPECT_EQ(limits().addresses_free, 300 * kMiB);
  EXPECT_EQ(limits().memory_origin, "/proc/self/limits (Max address space)");
  EXPECT_EQ(limits().free_origin, limits().memory_origin);
  file("proc/self/status", "VmSize:\t  900000 kB\n");
  EXPECT_EQ(limits().addresses_free, 0u);
}

TEST_F(HostLimitsTest, ALimitOfDataCountsNoFiles) {
  file("proc/self/limits",
       "Max data size             " + mib(200) + " unlimited bytes\n");
  file("proc/self/status", "VmSize:\t  999999 kB\nVmData:\t  51200 kB\n");
  expect_mib(150 - 64, 200);
  EXPECT_EQ(limits().free_origin, "/proc/self/limits (Max data size)");
  EXPECT_EQ(limits().addresses_free, std::nullopt);
}

TEST_F(HostLimitsTest, WithoutCgroupsThereAreNoFolders) {
  EXPECT_TRUE(cgroup_folders("cpu", root_).folders.empty());
}

TEST(HostLimits, KnowALimitThatThisProcessHasOnlyNow) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "it has one";
  EXPECT_EQ(read_host_limits().addresses_free, std::nullopt);
  rlimit limited = before;
  limited.rlim_cur = std::size_t{1} << 60;  // sanitizers map a lot
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const std::optional<std::size_t> left = read_host_limits().addresses_free;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_TRUE(left);
  EXPECT_LT(*left, limited.rlim_cur);
  EXPECT_GT(*left, limited.rlim_cur / 2);
}

TEST(HostLimits, OfThisMachineAreSane) {
  HostLimits limits = read_host_limits();
  ASSERT_TRUE(limits.memory.has_value());
  EXPECT_GT(*limits.memory, 16 * kMiB);
  EXPECT_LE(limits.memory_free.value_or(0), *limits.memory);
}

}  // namespace
}  // namespace penstock
