#include "penstock/monitor/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace penstock {
namespace {

using testing::HasSubstr;
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A made-up tree of the files that the kernel would show.
class HostTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-host-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void version_2() {
    write("proc/self/cgroup", "0::/job/inner\n");
    write("proc/self/mountinfo",
          "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
  }
  std::filesystem::path root_;
};

TEST_F(HostTest, WithoutCgroupsTheFreeMemoryCounts) {
  HostLimits limits = read_host_limits(root_);
  EXPECT_EQ(limits.memory, 8192 * kMiB);
  EXPECT_EQ(limits.memory_free, 4096 * kMiB);
  EXPECT_EQ(limits.memory_origin, "MemAvailable");
  EXPECT_GE(limits.cpus, 1);
}

TEST_F(HostTest, TheSmallestLimitOfAllParentsCounts) {
  version_2();
  write("sys/fs/cgroup/job/inner/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/job/inner/memory.max", "max\n");
  write("sys/fs/cgroup/job/memory.max", "1073741824\n");
  write("sys/fs/cgroup/job/memory.current", "209715200\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 104857600\n");
  HostLimits limits = read_host_limits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 0.5);
  EXPECT_THAT(limits.cpus_origin, HasSubstr("/job"));
  EXPECT_EQ(limits.memory, 1024 * kMiB);
  EXPECT_EQ(limits.memory_free, 924 * kMiB) << "cached files can be dropped";
  EXPECT_THAT(limits.memory_origin, HasSubstr("cgroup"));
}

TEST_F(HostTest, ReadsVersion1BesideAnEmptyVersion2) {
  write("proc/self/cgroup",
        "5:memory:/job\n4:cpu,cpuacct:/job\n0::/elsewhere\n");
  write("proc/self/mountinfo",
        "31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 23 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "25000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/job/cpu.stat",
        "nr_throttled 3\nthrottled_time 5000\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "536870912\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  HostLimits limits = read_host_limits(root_);
  EXPECT_DOUBLE_EQ(limits.cpus, 0.25);
  EXPECT_EQ(limits.memory, 512 * kMiB);
  EXPECT_EQ(read_host_use(root_).throttled_us, 5);
}

TEST_F(HostTest, WhatIsNotToldIsMissing) {
  HostUse use = read_host_use(root_);
  EXPECT_FALSE(use.resident_bytes.has_value());
  EXPECT_FALSE(use.throttled_us.has_value());
  EXPECT_FALSE(use.read_bytes.has_value());
}

TEST(HostUse, KnowsThisProcess) {
  HostUse use = read_host_use();
  EXPECT_GT(use.resident_bytes.value_or(0), kMiB);
  EXPECT_GE(use.peak_bytes.value_or(0), use.resident_bytes.value_or(0) / 2);
  EXPECT_GT(machine_json().find("memory_bytes")->integer(), 0);
}

}  // namespace
}  // namespace penstock
