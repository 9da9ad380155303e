#include <cstdlib>
#include <filesystem>
#include <string>

// These tests open the device `cuda` of the stand-in, which is built beside
// them, whatever plugin there is else.

namespace {

[[maybe_unused]] const int kNamed = [] {
  auto program = std::filesystem::read_symlink("/proc/self/exe");
  std::string folder =
      (program.parent_path().parent_path() / "lib" / "cuda_standin").string();
  return ::setenv("PENSTOCK_PARTS", folder.c_str(), 1);
}();

}  // namespace
