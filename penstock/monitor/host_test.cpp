#include "penstock/monitor/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "penstock/monitor/fake/kernel_tree.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t kMiB = std::size_t{1} << 20;

using HostTest = KernelTree;

TEST_F(HostTest, KnowsHowLongTheQuotaHeldItBack) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nthrottled_usec 7\n");
  EXPECT_EQ(read_host_use(root_).throttled_us, 7);
  write("proc/self/cgroup", "4:cpu,cpuacct:/job\n0::/elsewhere\n");
  write("sys/fs/cgroup/cpu/job/cpu.stat",
        "nr_throttled 3\nthrottled_time 5000\n");
  EXPECT_EQ(read_host_use(root_).throttled_us, 5);
}

TEST_F(HostTest, TellsMemoryOfItsOwnFromMappedFiles) {
  write("proc/self/status",
        "VmRSS:\t  700 kB\nRssAnon:\t  500 kB\nRssFile:\t  150 kB\n"
        "RssShmem:\t   50 kB\n");
  std::optional<MemoryShare> share = read_memory_share(root_);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->anonymous, 550u * 1024);
  EXPECT_EQ(share->files, 150u * 1024);
}

TEST_F(HostTest, WhatIsNotToldIsMissing) {
  EXPECT_FALSE(read_memory_share(root_));
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
  EXPECT_FALSE(machine_json().find("memory_free_from")->string().empty());
}

TEST_F(HostTest, AddsUpHowLongItsThreadsLackedAProcessor) {
  EXPECT_EQ(processor_queue_seconds(root_), std::nullopt);
  write("proc/self/task/7/schedstat", "9000000000 1500000000 12\n");
  write("proc/self/task/8/schedstat", "1 500000000 2\n");
  write("proc/self/task/9/status", "Name: no schedstat\n");
  EXPECT_DOUBLE_EQ(processor_queue_seconds(root_).value(), 2);
}

TEST(UseBetween, IsWhatWasCountedSinceAndTheMemoryOfNow) {
  HostUse earlier{.cpu_seconds = 1, .resident_bytes = 5, .throttled_us = 700};
  earlier.queued_seconds = 3;
  HostUse later{.cpu_seconds = 4, .resident_bytes = 9, .throttled_us = 900};
  later.read_bytes = 50;
  later.queued_seconds = 2;
  HostUse use = use_between(earlier, later);
  EXPECT_EQ(use.cpu_seconds, 3);
  EXPECT_EQ(use.resident_bytes, 9u);
  EXPECT_EQ(use.throttled_us, 200);
  EXPECT_EQ(use.read_bytes, std::nullopt) << "the earlier one did not tell";
  EXPECT_EQ(use.queued_seconds, 0) << "a thread has ended";
}

TEST(CpusUsed, IsProcessorTimeOverTime) {
  HostUse earlier{.cpu_seconds = 10}, later{.cpu_seconds = 13};
  EXPECT_DOUBLE_EQ(*cpus_used(earlier, later, 2s), 1.5);
  EXPECT_EQ(cpus_used(earlier, later, 0s), std::nullopt);
  EXPECT_EQ(cpus_used(HostUse(), later, 2s), std::nullopt);
}

TEST(DeviceUse, IsWhatTheDeviceHasGivenAway) {
  DeviceSpec spec{.kind = "sim"};
  std::unique_ptr<Device> sim = open_device(spec);
  Buffer held = sim->allocate(1000);
  DeviceUse use = read_device_use(*sim);
  EXPECT_EQ(use.used, 1000u);
  EXPECT_EQ(use.total, std::size_t{8} << 30);
}

TEST(DeviceUse, IsUnknownWhereMemoryIsTheHosts) {
  DeviceUse use = read_device_use(*open_device({.kind = "cpu"}));
  EXPECT_EQ(use.used, std::nullopt);
  EXPECT_EQ(use.total, std::nullopt);
}

}  // namespace
}  // namespace penstock
