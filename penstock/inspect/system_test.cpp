#include "penstock/inspect/system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "penstock/base/file.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

/// A made-up machine.
class System : public testing::Test {
 protected:
  System() {
    char name[] = "/tmp/penstock-system-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~System() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  SystemFacts read() { return read_system(root_, (root_ / "bin").string()); }
  std::filesystem::path root_;
};

TEST_F(System, OfNothingIsUnknown) {
  const SystemFacts facts = read();
  EXPECT_EQ(facts.os, "");
  EXPECT_EQ(facts.container, "");
  EXPECT_EQ(facts.gpu_driver, "");
  EXPECT_FALSE(facts.docker);
  EXPECT_TRUE(json_of(facts).find("os")->is_null());
  EXPECT_TRUE(json_of(facts).find("docker")->is_null());
}

TEST_F(System, IsReadFromItsFiles) {
  write("etc/os-release",
        "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 "
        "07:10:33 UTC 2025\nGCC version:  gcc version 12.2.0\n");
  write("bin/docker", "");
  write("bin/nvidia-ctk", "");
  write(".dockerenv", "");
  const SystemFacts facts = read();
  EXPECT_EQ(facts.os, "Debian GNU/Linux 12");
  EXPECT_EQ(facts.gpu_driver, "580.65.06");
  EXPECT_EQ(facts.container, "docker");
  EXPECT_EQ(facts.docker, (root_ / "bin/docker").string());
  EXPECT_EQ(facts.gpu_containers, (root_ / "bin/nvidia-ctk").string());
}

TEST_F(System, ADriveOfAVirtualMachineIsVirtualWhateverItSaysOfItself) {
  for (const char* drive : {"vda", "xvdb", "sda"})
    write("sys/block/" + std::string(drive) + "/queue/rotational", "1\n");
  EXPECT_EQ(drive_kind("ext4", "vda", root_), "virtual");
  EXPECT_EQ(drive_kind("ext4", "xvdb", root_), "virtual");
  EXPECT_EQ(drive_kind("ext4", "sda", root_), "spinning");
  EXPECT_EQ(drive_kind("ext4", "nvme0n1", root_), "nvme");
  EXPECT_EQ(drive_kind("nfs4", "", root_), "network");
}

TEST_F(System, OpenKernelModulesNameTheirDriverToo) {
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  "
        "Release Build\n");
  EXPECT_EQ(read().gpu_driver, "570.133.20");
}

TEST_F(System, ContainersAreKnownByWhatTheyLeave) {
  write("proc/1/cgroup", "12:cpu:/kubepods/burstable/pod1\n");
  EXPECT_EQ(read().container, "kubepods");
  write("run/.containerenv", "");
  EXPECT_EQ(read().container, "podman");
}

TEST_F(System, ADriveIsThatOfTheFolderOrOfTheOneAboveIt) {
  const DriveFacts facts = read_drive(root_ / "not" / "there");
  EXPECT_GT(facts.free_bytes.value_or(0), 0u);
  EXPECT_FALSE(facts.file_system.empty());
  const DriveFacts memory = read_drive("/dev/shm");
  EXPECT_EQ(memory.file_system == "tmpfs", memory.kind == "memory");
}

TEST(Drivers, TheLaterOfWhatCudaAndTheCardNeed) {
  EXPECT_EQ(least_driver(12080, 8, 0), "525.60.13");
  EXPECT_EQ(least_driver(13000, 9, 0), "580.65.06");
  EXPECT_EQ(least_driver(12080, 12, 0), "570.26");
  EXPECT_EQ(least_driver(11080, 9, 0), "520.61.05");
  EXPECT_EQ(least_driver(11080, 7, 5), "450.80.02");
  EXPECT_EQ(least_driver(9000, 3, 5), "");
}

TEST(Drivers, AreComparedByTheirNumbers) {
  EXPECT_TRUE(is_older_driver("525.60.13", "580.65.06"));
  EXPECT_TRUE(is_older_driver("525.60.13", "525.105.17"));
  EXPECT_FALSE(is_older_driver("580.65.06", "580.65.06"));
  EXPECT_FALSE(is_older_driver("1000.1", "580.65.06"));
  EXPECT_TRUE(is_older_driver("580", "580.1"));
}

TEST_F(System, AMachineIsMeasuredOnceAndKept) {
  const Json first = machine_profile(root_ / "kept", nullptr);
  for (const char* key : {"memory_bytes_s", "memory_bytes_s_all", "cores"})
    EXPECT_GT(first.find(key)->number(), 0) << key;
  EXPECT_GT(first.find("drive")->find("read_bytes_s")->number(), 0);
  EXPECT_GE(first.find("drive")->find("read_latency_ms")->number(), 0);
  EXPECT_TRUE(first.find("copy_bytes_s")->is_null());
  EXPECT_EQ(machine_profile(root_ / "kept", nullptr), first);
  EXPECT_NE(*machine_profile(root_ / "kept", nullptr, true).find("measured"),
            *first.find("measured"));
  // Of another machine, or damaged: measured again.
  write("kept/machine.json", "{\"of\": {\"cpus\": 4096}, \"cores\": 4096}");
  EXPECT_LT(machine_profile(root_ / "kept", nullptr).find("cores")->number(),
            4096);
  write("kept/machine.json", "{\"of\"");
  EXPECT_NE(machine_profile(root_ / "kept", nullptr).find("drive"), nullptr);
  std::size_t files = 0;
  for (const auto& left : std::filesystem::directory_iterator(root_ / "kept"))
    files += left.is_regular_file();
  EXPECT_EQ(files, 1u) << "the file of the trial is gone";
}

}  // namespace
}  // namespace penstock
