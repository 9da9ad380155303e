#include "penstock/session/drive.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock {
namespace {

const char* const kMounts =
    "20 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw\n"
    "21 20 0:30 / /data rw - nfs4 server:/export rw\n"
    "22 20 0:31 / /data/with\\040space rw shared:3 master:1 - xfs /dev/sdb rw\n"
    "23 20 0:32 / /dev/shm rw - tmpfs tmpfs rw\n";

TEST(Drive, IsThatOfTheNearestMountAbove) {
  EXPECT_EQ(drive_of("/home/u/a", kMounts).device, "/dev/nvme0n1p1");
  EXPECT_EQ(drive_of("/data", kMounts).type, "nfs4");
  EXPECT_EQ(drive_of("/data/x/y", kMounts).device, "server:/export");
  EXPECT_EQ(drive_of("/database", kMounts).mount, "/");
  EXPECT_EQ(drive_of("/data/with space/x", kMounts).device, "/dev/sdb");
  EXPECT_TRUE(drive_of("/dev/shm/x", kMounts).in_memory());
  EXPECT_EQ(drive_of("/x", "").mount, "");
}

TEST(Drive, IsReadToSayHowFast) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "drive_test";
  std::ofstream(file) << std::string(std::size_t{8} << 20, 'x');
  EXPECT_GT(read_rate({file}).value_or(0), 1e5);
  std::ofstream(file) << "small";
  EXPECT_FALSE(read_rate({file}));
  std::filesystem::remove(file);
  EXPECT_FALSE(read_rate({file}));
  // A chroot may see none.
  if (drive_of("/", read_mounts()).mount == "/") {
    EXPECT_NE(drive_of(testing::TempDir(), read_mounts()).mount, "");
  }
}

}  // namespace
}  // namespace penstock
