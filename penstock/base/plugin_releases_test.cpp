#include "penstock/base/plugin_releases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace penstock {
namespace {

TEST(PluginReleases, AreThoseOfTheFilesNewestFirst) {
  const std::filesystem::path folder =
      testing::TempDir() + "/releases_" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  for (const char* name : {"libpart_2.9.so", "libpart_2.11.so", "libpart.so",
                           "libpart_2.12.txt", "libother_3.0.so"})
    std::ofstream(folder / name) << "x";
  EXPECT_THAT(plugin_releases("libpart_", {"/nowhere", folder, folder}),
              testing::ElementsAre("2.11", "2.9"));
  EXPECT_THAT(plugin_releases("libnone_", {folder}), testing::IsEmpty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock
