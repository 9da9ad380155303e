#include "penstock/session/torch_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace penstock {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kPrefix = "libpart_";

/// A folder with trainers for 2.9 and 2.11, and with a torch that says which
/// one it is, but whose libraries cannot be loaded.
class TorchLibrariesTest : public testing::Test {
 protected:
  TorchLibrariesTest()
      : folder_(testing::TempDir() + "/torch_of_a_test_" +
                std::to_string(::getpid())) {
    fs::create_directories(folder_ / "torch/lib");
    for (const char* name : {"libpart_2.9.so", "libpart_2.11.so"})
      std::ofstream(folder_ / name) << "x";
    ::setenv("PENSTOCK_TORCH_DIR", folder_.c_str(), 1);
  }
  ~TorchLibrariesTest() override {
    ::unsetenv("PENSTOCK_TORCH_DIR");
    fs::remove_all(folder_);
  }

  void install(const std::string& version) {
    std::ofstream(folder_ / "torch/version.py")
        << "from typing import Optional\n__version__ = '" << version << "'\n";
    for (const char* name : {"libc10.so", "libtorch_cpu.so"})
      std::ofstream(folder_ / "torch/lib" / name) << "no library";
  }

  const fs::path folder_;
};

TEST_F(TorchLibrariesTest, AreNotFoundWhereThereAreNone) {
  EXPECT_FALSE(find_torch());
  const TrainerChoice chosen = choose_trainer(kPrefix, {folder_});
  EXPECT_EQ(chosen.release, "2.11");
  EXPECT_THAT(chosen.releases, testing::ElementsAre("2.11", "2.9"));
  EXPECT_EQ(choose_trainer(kPrefix, {"/nowhere"}).release, "");
}

TEST_F(TorchLibrariesTest, SayWhichReleaseTheyAre) {
  install("2.15.0+cu132");
  const std::optional<TorchLibraries> torch = find_torch();
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->folder, folder_ / "torch");
  EXPECT_EQ(torch->version, "2.15.0+cu132");
  EXPECT_EQ(torch->release(), "2.15");
  EXPECT_FALSE(torch->loaded);
}

TEST_F(TorchLibrariesTest, ThatNoTrainerFitsAreToldWithThoseThatDo) {
  install("2.15.0+cu132");
  const TrainerChoice chosen = choose_trainer(kPrefix, {folder_});
  EXPECT_EQ(chosen.release, "2.11");
  ASSERT_TRUE(chosen.refusal);
  EXPECT_EQ(chosen.refusal->parts().code, "trainer.torch");
  EXPECT_THAT(chosen.refusal->parts().why,
              HasSubstr("2.15.0+cu132, expected one of 2.11, 2.9"));
  EXPECT_THAT(chosen.refusal->parts().next, HasSubstr("torch==2.11.*"));
}

TEST_F(TorchLibrariesTest, ThatCannotBeLoadedAreRefused) {
  install("2.9.1");
  try {
    choose_trainer(kPrefix, {folder_});
    FAIL() << "they were loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "trainer.torch");
    EXPECT_THAT(error.parts().why, HasSubstr("libc10.so"));
  }
}

}  // namespace
}  // namespace penstock
