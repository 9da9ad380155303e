#include "penstock/sources/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "penstock/base/error.h"
#include "penstock/base/plugin_build.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The parts under part_test/ are built for these tests alone.
const std::vector<std::filesystem::path> kTestParts = {PENSTOCK_TEST_PARTS};

Error refusal(const std::string& kind,
              const std::vector<std::filesystem::path>& folders) {
  try {
    source_plugin(kind, folders);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "it was loaded"});
}

TEST(Part, IsFoundInAnyOfTheFolders) {
  const SourcePlugin& part =
      source_plugin("good", {"/nowhere", kTestParts[0], "/nowhere/else"});
  EXPECT_NE(part.open_source, nullptr);
  EXPECT_EQ(&source_plugin("good", kTestParts), &part);
}

TEST(Part, ThatIsLinkedIntoTheProgramIsNotLookedFor) {
  static const SourcePlugin linked{};
  EXPECT_EQ(refusal("linked", kTestParts).parts().code, "source.part_missing");
  use_plugin("linked", linked);
  EXPECT_EQ(&source_plugin("linked", kTestParts), &linked);
  EXPECT_EQ(&source_plugin("linked", {"/nowhere"}), &linked);
}

TEST(Part, ThrowsErrorsThatTheProgramCatches) {
  const SourcePlugin& part = source_plugin("good", kTestParts);
  try {
    part.read_schema({.table = "t"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "test.thrown");
    EXPECT_EQ(error.parts().where, "t");
  }
}

TEST(Part, ThrowsErrorsThatAreStandardExceptions) {
  const SourcePlugin& part = source_plugin("good", kTestParts);
  EXPECT_THROW(part.read_schema({}), std::exception);
}

TEST(Part, ThatIsMissingSaysWhichPackageToInstall) {
  Error sqlite = refusal("sqlite", {"/nowhere", "/nowhere/else"});
  EXPECT_EQ(sqlite.kind(), ErrorKind::source);
  EXPECT_EQ(sqlite.parts().code, "source.part_missing");
  EXPECT_THAT(sqlite.what(), AllOf(HasSubstr("libsqlite3-0"),
                                   HasSubstr("/nowhere, /nowhere/else"),
                                   HasSubstr("libsqlite3-dev")));
  Error postgres = refusal("postgres", {"/nowhere"});
  EXPECT_EQ(postgres.parts().code, "source.part_missing");
  EXPECT_THAT(postgres.what(), HasSubstr("apt-get install libpq5"));
}

TEST(Part, WhoseLibraryIsMissingSaysWhichOne) {
  Error error = refusal("orphan", kTestParts);
  EXPECT_EQ(error.parts().code, "source.part_missing");
  EXPECT_THAT(error.what(), HasSubstr("libpenstock_test_absent.so"));
  EXPECT_THAT(error.parts().next, HasSubstr("install"));
}

TEST(Part, OfAnotherBuildIsRefusedWithBothNames) {
  Error error = refusal("old", kTestParts);
  EXPECT_EQ(error.parts().code, "source.part_version");
  EXPECT_THAT(error.parts().where, HasSubstr("libpenstock_source_old.so"));
  EXPECT_THAT(error.parts().why, AllOf(HasSubstr("0.0.9 (build old)"),
                                       HasSubstr(std::string(own_build()))));
  EXPECT_EQ(::dlopen((kTestParts[0] / "libpenstock_source_old.so").c_str(),
                     RTLD_NOW | RTLD_NOLOAD),
            nullptr)
      << "it was opened";
}

TEST(Part, WithoutABuildOrAnEntryIsRefused) {
  for (const char* kind : {"stranger", "empty"}) {
    Error error = refusal(kind, kTestParts);
    EXPECT_EQ(error.parts().code, "source.part_version") << kind;
    EXPECT_THAT(error.what(), HasSubstr("not a Penstock plugin")) << kind;
  }
}

}  // namespace
}  // namespace penstock
