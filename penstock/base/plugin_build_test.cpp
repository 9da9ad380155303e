#include "penstock/base/plugin_build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "penstock/base/file.h"
#include "penstock/base/plugin.h"
#include "penstock/base/temporary.h"

namespace penstock {
namespace {

TEST(PluginBuild, OfTheCoreIsItsOwn) {
  EXPECT_THAT(std::string(own_build()),
              testing::MatchesRegex("[0-9.]+ \\(build [0-9a-f]+\\)"));
  EXPECT_EQ(build_of_library(plugin_folders()[0] / "libpenstock_core.so"),
            std::string(own_build()));
}

TEST(PluginBuild, OfALibraryThatSaysNothingIsEmpty) {
  EXPECT_EQ(build_of_library("/lib64/ld-linux-x86-64.so.2"), std::string());
}

TEST(PluginBuild, IsUnknownOfWhatIsNoLibrary) {
  EXPECT_EQ(build_of_library("/nowhere/libpenstock_x.so"), std::nullopt);
  EXPECT_EQ(build_of_library("/"), std::nullopt);
  EXPECT_EQ(build_of_library("/proc/self/cmdline"), std::nullopt);
}

}  // namespace
}  // namespace penstock
