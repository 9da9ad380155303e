#include "penstock/base/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace penstock {
namespace {

TEST(Part, IsLookedForWhereTheEnvironmentSaysFirst) {
  ::setenv("PENSTOCK_PARTS", "/from/the/environment", 1);
  auto folders = plugin_folders();
  ::unsetenv("PENSTOCK_PARTS");
  ASSERT_EQ(folders.size(), plugin_folders().size() + 1);
  EXPECT_EQ(folders[0], "/from/the/environment");
}

TEST(Part, IsLookedForBesideTheCore) {
  const auto folders = plugin_folders();
  ASSERT_EQ(folders.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folders[0] / "libpenstock_core.so"))
      << folders[0];
}

TEST(Part, IsLookedForBesideTheLibraryThatWantsIt) {
  auto libc = folder_of_library(::dlsym(RTLD_DEFAULT, "getpid"));
  EXPECT_TRUE(libc.is_absolute()) << libc;
  EXPECT_TRUE(std::filesystem::exists(libc / "libc.so.6")) << libc;
}

TEST(Part, OfTheProgramItselfIsNotLookedForBesideALibrary) {
  static const char ours = 0;
  EXPECT_EQ(folder_of_library(&ours), "");
  EXPECT_EQ(folder_of_library(nullptr), "");
}

// What a part that is there does is tested with the parts of sources.
TEST(Part, ThatIsNowhereIsAnErrorOfTheWantedKind) {
  try {
    load_library({.library = "libpenstock_absent.so",
                  .shown = "the part that is absent",
                  .kind = ErrorKind::device,
                  .code = "absent",
                  .install = "install nothing"},
                 {"/nowhere", "/nowhere/else"});
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.parts().code, "absent.part_missing");
    EXPECT_EQ(error.parts().what, "cannot load the part that is absent");
    EXPECT_EQ(error.parts().where, "libpenstock_absent.so");
    EXPECT_THAT(error.parts().why,
                testing::HasSubstr("/nowhere, /nowhere/else"));
    EXPECT_EQ(error.parts().next, "install nothing");
  }
}

}  // namespace
}  // namespace penstock
