#include "penstock/base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace penstock {
namespace {

class RegularFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/penstock-regular-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// 0: it was opened.
  static int reason(const std::string& path) {
    const int file = open_regular_file(path.c_str());
    if (file < 0) return errno;
    ::close(file);
    return 0;
  }
  std::string folder_;
};

TEST_F(RegularFile, AFileIsOpenedAlsoThroughALink) {
  std::ofstream(folder_ + "/a") << "bytes";
  std::filesystem::create_symlink(folder_ + "/a", folder_ + "/link");
  EXPECT_EQ(reason(folder_ + "/a"), 0);
  EXPECT_EQ(reason(folder_ + "/link"), 0);
}

TEST_F(RegularFile, APipeASocketAndADeviceAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string socket_path = folder_ + "/socket";
  std::strncpy(address.sun_path, socket_path.c_str(),
               sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
            0);
  for (const std::string& path :
       {folder_ + "/pipe", socket_path, std::string("/dev/null")}) {
    EXPECT_EQ(reason(path), ENXIO) << path;
    EXPECT_EQ(why_not_opened(ENXIO),
              "it is a pipe, a socket or a device, not a regular file");
  }
  ::close(socket);
}

TEST_F(RegularFile, AFolderAndAMissingFileKeepTheirReasons) {
  EXPECT_EQ(reason(folder_), EISDIR);
  EXPECT_EQ(reason(folder_ + "/none"), ENOENT);
  EXPECT_EQ(why_not_opened(ENOENT), std::strerror(ENOENT));
}

}  // namespace
}  // namespace penstock
