#include "penstock/cli/python_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "penstock/base/base.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class PythonProgram : public testing::Test {
 protected:
  PythonProgram()
      : python_(testing::TempDir() + "/python_of_a_test_" +
                std::to_string(::getpid())) {}
  ~PythonProgram() override {
    ::unsetenv("PENSTOCK_PYTHON");
    ::unlink(python_.c_str());
  }

  /// A Python that does this when it is asked for the package.
  void write(const std::string& script) {
    std::ofstream(python_) << "#!/bin/sh\n" << script << "\n";
    ::chmod(python_.c_str(), 0755);
  }
  std::string refusal(const std::string& python) {
    ::setenv("PENSTOCK_PYTHON", python.c_str(), 1);
    try {
      become_python("penstock.training", "{}");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "cli.python");
      EXPECT_EQ(error.parts().where, python);
      EXPECT_THAT(error.parts().next, HasSubstr("PENSTOCK_PYTHON"));
      return error.parts().why;
    }
  }

  const std::string python_;
};

TEST_F(PythonProgram, OneThatIsNotThereIsRefused) {
  EXPECT_THAT(refusal("/nowhere/python3"), HasSubstr("No such file"));
}

TEST_F(PythonProgram, OneWithoutThePackageIsRefusedWithItsOwnWords) {
  write("echo Traceback >&2; echo \"ModuleNotFoundError: none here\" >&2");
  EXPECT_THAT(refusal(python_), HasSubstr("ModuleNotFoundError: none here"));
}

TEST_F(PythonProgram, OneWithAnotherVersionIsRefused) {
  write("echo warning; echo penstock-version:0.0.9");
  EXPECT_THAT(refusal(python_), HasSubstr("penstock 0.0.9"));
}

}  // namespace
}  // namespace penstock
