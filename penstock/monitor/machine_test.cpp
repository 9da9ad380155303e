#include "penstock/monitor/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "penstock/monitor/fake/kernel_tree.h"

namespace penstock {
namespace {

using MachineTest = KernelTree;

TEST_F(MachineTest, ReadsWhatTheKernelCounts) {
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  write("proc/stat", "cpu  100 0 50 800 40 5 5 0 7 0\ncpu0 1 2 3\n");
  write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  write("proc/diskstats",
        "   8       0 sda 10 0 200 0 20 0 300 0 0 1500 0\n"
        "   8       1 sda1 10 0 200 0 20 0 300 0 0 1500 0\n"
        "   7       0 loop0 10 0 900 0 20 0 900 0 0 9000 0\n"
        " 259       0 nvme0n1 1 0 100 0 2 0 0 0 0 2500 0\n");
  std::filesystem::create_directories(root_ / "sys/block/sda");
  std::filesystem::create_directories(root_ / "sys/block/nvme0n1");
  std::filesystem::create_directories(root_ / "sys/block/loop0");
  write("proc/net/dev",
        "Inter-| Receive\n face |bytes\n"
        "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
        "  eth0: 500 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0\n");
  write("proc/pressure/io", "some avg10=12.50 avg60=1 avg300=0 total=9\n");
  const MachineCounters seen = read_machine(root_);
  EXPECT_NEAR(*seen.cpu_total_s, 1000 * tick, 1e-9);
  EXPECT_NEAR(*seen.cpu_busy_s, 160 * tick, 1e-9);
  EXPECT_EQ(seen.memory_used, 600 * 1024.0);
  EXPECT_EQ(seen.memory_total, 1000 * 1024.0);
  EXPECT_EQ(seen.disk_read, 300 * 512.0);
  EXPECT_EQ(seen.disk_written, 300 * 512.0);
  EXPECT_EQ(seen.disk_busy_s, 2.5);
  EXPECT_EQ(seen.net_received, 500);
  EXPECT_EQ(seen.net_sent, 70);
  EXPECT_EQ(seen.io_pressure, 0.125);
  EXPECT_EQ(seen.memory_pressure, std::nullopt);
}

TEST_F(MachineTest, WhatIsNotToldIsMissing) {
  const MachineCounters seen = read_machine(root_);
  EXPECT_EQ(seen.cpu_busy_s, std::nullopt);
  EXPECT_EQ(seen.memory_used, std::nullopt);
  EXPECT_EQ(seen.disk_read, std::nullopt);
  EXPECT_EQ(seen.net_sent, std::nullopt);
  EXPECT_EQ(seen.io_pressure, std::nullopt);
  write("proc/stat", "cpu  100 0\n");
  write("proc/diskstats", "   8       0 sda 10\n");
  write("proc/pressure/io", "full avg10=1\n");
  EXPECT_EQ(read_machine(root_).cpu_busy_s, std::nullopt);
  EXPECT_EQ(read_machine(root_).disk_read, std::nullopt);
  EXPECT_EQ(read_machine(root_).io_pressure, std::nullopt);
}

TEST_F(MachineTest, ReadsAProcessWithItsThreads) {
  const std::string numbers =
      " 1 1 1 0 -1 4194560 9 0 0 0 30 12 0 0 20 0 2 0 99 1000000 25 0\n";
  write("proc/77/stat", "77 (my (odd) name) R" + numbers);
  write("proc/77/task/77/stat", "77 (main) S" + numbers);
  write("proc/77/task/78/stat", "78 (read) D" + numbers);
  write("proc/77/io", "rchar: 400\nread_bytes: 100\nwrite_bytes: 3\n");
  const auto seen = read_process(77, root_);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->name, "my (odd) name");
  EXPECT_GT(seen->cpu_s, 0);
  EXPECT_EQ(seen->resident,
            25.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(seen->read, 100);
  EXPECT_EQ(seen->asked_for, 400);
  ASSERT_EQ(seen->threads.size(), 2u);
  EXPECT_EQ(seen->threads.at(78).name, "read");
  EXPECT_EQ(seen->threads.at(78).state, 'D');
  EXPECT_EQ(read_process(79, root_), std::nullopt);
  write("proc/81/stat", "81 (ended) Z" + numbers);
  EXPECT_EQ(read_process(81, root_), std::nullopt);
  write("proc/80/stat", "80 (x) R 1 2\n");
  EXPECT_EQ(read_process(80, root_), std::nullopt);
}

TEST_F(MachineTest, FindsTheProcessesBelowOne) {
  for (auto [number, parent] : {std::pair(5, 1), {6, 5}, {7, 6}, {8, 1}})
    write("proc/" + std::to_string(number) + "/stat",
          std::to_string(number) + " (a) S " + std::to_string(parent) + " 1\n");
  write("proc/self/stat", "5 (a) S 5 1\n");
  EXPECT_EQ(processes_below(5, root_), (std::vector<pid_t>{6, 7}));
  EXPECT_TRUE(processes_below(7, root_).empty());
  write("proc/5/stat", "5 (a) S 7 1\n");  // a circle
  EXPECT_EQ(processes_below(5, root_).size(), 3u);

  // Where the kernel tells the children of each thread, by these alone.
  write("proc/5/task/5/children", "8 ");
  write("proc/5/task/55/children", "9 10 ");
  write("proc/9/task/9/children", "11 ");
  EXPECT_THAT(processes_below(5, root_),
              testing::UnorderedElementsAre(8, 9, 10, 11));
}

TEST(Machine, KnowsThisOne) {
  const MachineCounters first = read_machine(), second = read_machine();
  ASSERT_TRUE(first.cpu_total_s && second.cpu_total_s);
  EXPECT_GE(*second.cpu_total_s, *first.cpu_total_s);
  EXPECT_GT(first.memory_total.value_or(0), 0);
  const auto self = read_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(self->threads.contains(::getpid()));
}

TEST(Gpus, AreThoseOfTheDriver) {
  EXPECT_TRUE(gpus_of(NvmlCalls{}).empty());
  ASSERT_EQ(gpus_of(synthetic_nvml()), std::vector<std::string>{"synthetic"});
  GpuSensor sensor("synthetic", synthetic_nvml());
  EXPECT_EQ(sensor.name(), "synthetic GPU");
  const GpuUse use = sensor.read();
  EXPECT_TRUE(use.utilisation && use.temperature_c && use.power_w);
  EXPECT_TRUE(use.memory_used && use.sm_clock_mhz && use.clock_reasons);
  EXPECT_LE(*use.utilisation, 1);
}

}  // namespace
}  // namespace penstock
